// What the page asks, answered: the methods of viewer/page/protocol.ts, JSON in and JSON out. One session of modules,
// used by one thread. Compiled to WebAssembly for the page's worker and natively for `view --serve`, for what pages
// carry, and for tests.
#pragma once
#include <memory>
#include <string>
#include <string_view>

namespace hlo {

class PageEngine {
 public:
  PageEngine();
  ~PageEngine();
  PageEngine(const PageEngine&) = delete;
  PageEngine& operator=(const PageEngine&) = delete;

  // In the place of what is open: a recording, XLA's dump folder, a run of many modules, a lineage.hlol, or a file of
  // modules. Throws Failure; what was open stays open then.
  void open(const std::string& path);
  // A file for the next question `open`: `lineage.hlol`, a module, a file of a dump. Names may have folders in them
  // (`a/b.txt`). Throws Failure(kIo) where the name leads out of its folder.
  void put(std::string name, std::string bytes);
  // Never throws: what fails is {"error":{"message":…,"hint":…}}, of texts with line and column.
  std::string answer(std::string_view question);

 private:
  std::unique_ptr<class PageSession> session_;
};

}  // namespace hlo
