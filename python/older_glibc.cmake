# For the wheel: the same objects, linked to ask for an older glibc than this machine's and for no other library.
# python/build_wheel.py says where things are (python/wheel_parts.py fetches and compiles them):
#   HLO_OLDER_GLIBC  libc6 and libc6-dev of an older Debian, unpacked
#   HLO_ARCHIVES     libfmt.a, libzip.a and libprotobuf.a, whose like Debian has as shared libraries only, and older_glibc.o
# The C++ library goes into each binary, hidden: this machine's is newer than what older systems have. Exceptions cross
# between them by libgcc_s.so.1, which is the system's.
set(GLIBC_FOLDERS ${HLO_OLDER_GLIBC}/usr/lib/${CMAKE_LIBRARY_ARCHITECTURE} ${HLO_OLDER_GLIBC}/lib/${CMAKE_LIBRARY_ARCHITECTURE})
list(TRANSFORM GLIBC_FOLDERS PREPEND -L OUTPUT_VARIABLE GLIBC_OPTIONS)
list(TRANSFORM GLIBC_FOLDERS PREPEND -B)
add_link_options(--sysroot=${HLO_OLDER_GLIBC} ${GLIBC_FOLDERS} ${GLIBC_OPTIONS} -static-libstdc++ ${HLO_ARCHIVES}/older_glibc.o
  $<$<NOT:$<STREQUAL:$<TARGET_PROPERTY:TYPE>,MODULE_LIBRARY>>:-Wl,-z,defs>)
# This machine's glibc has them within libc.so.6.
string(APPEND CMAKE_CXX_STANDARD_LIBRARIES " -lpthread -ldl -lm")

find_library(HLO_LIBZ libz.a REQUIRED)# This machine's glibc has them within libc.so.6.
string(APPEND CMAKE_CXX_STANDARD_LIBRARIES " -lpthread -ldl -lm")

find_library(HLO_LIBZSTD libzstd.a REQUIRED)
function(hlo_archive target)
  get_target_property(type ${target} TYPE)
  if(type STREQUAL INTERFACE_LIBRARY)
    set_target_properties(${target} PROPERTIES INTERFACE_LINK_LIBRARIES "${ARGN}")
    return()
  endif()
  list(POP_FRONT ARGN archive)
  set_target_properties(${target} PROPERTIES IMPORTED_LOCATION ${archive})
  get_target_property(configurations ${target} IMPORTED_CONFIGURATIONS)
  foreach(configuration IN LISTS configurations)
    set_target_properties(${target} PROPERTIES IMPORTED_LOCATION_${configuration} ${archive})
  endforeach()
  set_property(TARGET ${target} APPEND PROPERTY INTERFACE_LINK_LIBRARIES ${ARGN})
endfunction()
hlo_archive(ZLIB::ZLIB ${HLO_LIBZ})
hlo_archive(PkgConfig::ZSTD ${HLO_LIBZSTD})
hlo_archive(fmt::fmt ${HLO_ARCHIVES}/libfmt.a)
hlo_archive(protobuf::libprotobuf ${HLO_ARCHIVES}/libprotobuf.a ZLIB::ZLIB)
hlo_archive(PkgConfig::LIBZIP ${HLO_ARCHIVES}/libzip.a ZLIB::ZLIB)
