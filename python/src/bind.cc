// The extension `hlo_replay._hlo` over libhlo_replay.so.
#include "bind.h"

NB_MODULE(_hlo, m) {
  using namespace hlo::python;
  m.doc() = "What hlo_replay takes from libhlo_replay.so.";
  bind_errors(m);
  bind_modules(m);
}
