# Writes OUT: the driver that an installed XLA is asked by, and what keeps the arguments of a program, as C++ string
# constants.
file(READ "${DRIVER}" text)
set(code "#include \"replay/installed/embedded.h\"\n#include \"replay/os/process/program.h\"\n\nnamespace hlo {\nconst char* const kXlaDriver = R\"embedded(${text})embedded\";\n")
file(READ "${KEEP}" text)
string(APPEND code "const char* const kArgumentHook = R\"embedded(${text})embedded\";\n}  // namespace hlo\n")
file(WRITE "${OUT}" "${code}")
