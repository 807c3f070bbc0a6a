# find_package(hlo_replay): the target hlo_replay::hlo_replay, standard C++ headers and one shared library.
include(${CMAKE_CURRENT_LIST_DIR}/hlo_replayTargets.cmake)
