# Which files the page's engine is made from, by the targets that exist: ENGINE_LIBRARIES, and of each
# ENGINE_SOURCES_library. ENGINE_REQUIRED_FILE lists all of them below the sources, with what is no C++; headers are known
# to whoever compiled it alone: viewer/engine/made/inputs.sha256.

# Not in a browser: processes, other programs, devices, packed files, drawings by Graphviz. What calls them says so
# (not_in_pages.cc).
set(ENGINE_WITHOUT
  dump/graphviz.cc ir/base/memory.cc ir/base/parallel.cc ir/eval/blas.cc
  replay/os/process/ahead.cc replay/record/files/held_modules.cc replay/record/files/like_modules.cc
  replay/emitted/ replay/installed/ replay/os/interrupt.cc replay/mcp/ replay/judge/arguments/npz.cc replay/judge/op_cases.cc replay/judge/arguments/own_constants.cc replay/report/measured/profile.cc replay/os/process/program.cc replay/os/progress.cc
  replay/os/process/ptxas.cc replay/os/process/spawn.cc replay/record/files/timeline.cc replay/record/files/timeline_xspace.cc
  replay/replayer/replayer.cc
  viewer/drawing.cc viewer/engine/read_modules.cc viewer/pages.cc viewer/write_pages.cc)

set(ENGINE_LIBRARIES base ir eval parser passes dump layout replay_lib engine page)

foreach(library ${ENGINE_LIBRARIES})
  set(sources viewer/engine/not_in_pages.cc viewer/engine/read_texts.cc viewer/engine/wasm_main.cc)
  if(NOT library STREQUAL page)
    get_target_property(sources hlo_${library} SOURCES)
  endif()
  set(ENGINE_SOURCES_${library})
  foreach(source ${sources})
    set(wanted TRUE)
    foreach(without ${ENGINE_WITHOUT})
      string(FIND "${source}" "${without}" at)
      if(at EQUAL 0)
        set(wanted FALSE)
      endif()
    endforeach()
    cmake_path(IS_ABSOLUTE source generated)
    # Of what is generated the page needs the descriptions of GPUs alone.
    if(wanted AND (NOT generated OR source STREQUAL GPU_TARGETS_CC))
      list(APPEND ENGINE_SOURCES_${library} ${source})
    endif()
  endforeach()
endforeach()

set(required ir/target/embed_targets.cmake viewer/engine/CMakeLists.txt viewer/engine/sources.cmake
  viewer/page/glue.d.ts viewer/page/protocol.ts viewer/page/tsconfig.engine.json viewer/page/worker.ts)
foreach(source ${GPU_TARGETS})
  cmake_path(RELATIVE_PATH source BASE_DIRECTORY ${PROJECT_SOURCE_DIR})
  list(APPEND required ${source})
endforeach()
foreach(library ${ENGINE_LIBRARIES})
  list(APPEND required ${ENGINE_SOURCES_${library}})
endforeach()
list(REMOVE_ITEM required ${GPU_TARGETS_CC})
list(SORT required)
list(JOIN required "\n" required)
file(CONFIGURE OUTPUT ${ENGINE_REQUIRED_FILE} CONTENT "${required}\n" @ONLY)
