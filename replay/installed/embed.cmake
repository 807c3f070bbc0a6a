# Writes OUT: the driver that an installed XLA is asked by, as a C++ string constant.
file(READ "${DRIVER}" text)
set(code "#include \"replay/installed/embedded.h\"\n\nnamespace hlo {\nconst char* const kXlaDriver = R\"embedded(${text})embedded\";\n}  // namespace hlo\n")
file(WRITE "${OUT}" "${code}")
