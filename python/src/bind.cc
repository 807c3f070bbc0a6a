// The extension `hlo_replay._hlo` over libhlo_replay.so.
#include "bind.h"
#include "hlo/version.h"

NB_MODULE(_hlo, m) {
  using namespace hlo::python;
  m.doc() = "What hlo_replay takes from libhlo_replay.so.";
  m.def("version", &hlo::version, "Of libhlo_replay.so: `0.1.0`.");
  bind_errors(m);
  bind_modules(m);
}
