# Writes OUT: the pages of DIR as C++ string constants. Long texts are split, since compilers bound one literal.
# {{script_hash}} of a page's Content-Security-Policy becomes the SHA-256 of the page's own script in base64, so that
# browsers run that script and no other.

include(${CMAKE_CURRENT_LIST_DIR}/base64_hash.cmake)

set(code "#include \"viewer/pages.h\"\n\nnamespace hlo {\n")
foreach(pair "kStageTemplate:stage.html" "kDiffTemplate:diff.html" "kLinkTemplate:link.html" "kProfileTemplate:profile.html" "kGraphsTemplate:graphs.html")
  string(REPLACE ":" ";" pair "${pair}")
  list(GET pair 0 name)
  list(GET pair 1 file)
  file(READ "${DIR}/${file}" text)
  string(FIND "${text}" "<script>" begin REVERSE)
  string(FIND "${text}" "</script>" end REVERSE)
  if(begin LESS 0 OR end LESS begin OR NOT text MATCHES "{{script_hash}}")
    message(FATAL_ERROR "${file} has no script of its own, or no policy that names its {{script_hash}}")
  endif()
  math(EXPR begin "${begin} + 8")
  math(EXPR length "${end} - ${begin}")
  string(SUBSTRING "${text}" ${begin} ${length} script)
  string(SHA256 hash "${script}")
  base64_of_hash("${hash}" hash)
  string(REPLACE "{{script_hash}}" "${hash}" text "${text}")
  string(APPEND code "const char* const ${name} = R\"page(${text})page\";\n")
endforeach()
string(APPEND code "}  // namespace hlo\n")
file(WRITE "${OUT}" "${code}")
