// The page of `view`: one file that opens from the file system, without a network. It carries what was recorded, and
// the engine that answers about it (viewer/engine) where the program was built with one, else answers made beforehand.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "replay/os/files.h"
#include "replay/record/recording/recording.h"
#include "viewer/archive.h"

namespace hlo {

// Of a page without the engine, whose answers take what its own parts leave.
inline constexpr size_t kPageBytes = 12'000'000;

struct PageContents {
  std::string title;
  std::vector<ArchiveFile> files;     // what the engine opens: a folder a module, or modules as texts
  std::string note;                   // what whoever made the page says to its reader
  std::vector<std::string> notices;   // what could not be read or was left out, for the reader
  std::optional<std::string> lesson;  // the page carries the lessons and opens with this one; empty: with their list
};

// The program has the engine as WebAssembly, and it understands what pages ask: they answer by themselves.
bool page_engine_inside();
// … and it was made from older sources than the program, which pages say.
bool page_engine_older();

// The lessons that a page can carry, in their order. `name` is what the command and the address `#lesson=` call it.
struct LessonName {
  std::string name, title;
};
std::vector<LessonName> lesson_names();

// A recording as FOLDER/recording.json, FOLDER/lineage.hlol and its other files, which lie in `files_in`. What cannot
// be read becomes a notice. False where no stage could be read, and nothing was added. Throws Failure where
// interrupted.
bool add_recording(const Recording& recording, const std::string& files_in, const std::string& folder,
                   PageContents* contents);

// Who answers what the page asks.
enum class PageEngineKind { kInside, kServer, kNone };

// The page. Of kNone what Carried of viewer/page/protocol.ts lists is answered beforehand, most wanted first, until
// kPageBytes are full; of kServer `contents` holds no files. The same contents give the same bytes.
std::string page_html(const PageContents& contents, PageEngineKind engine);
// … with the engine where the program has it.
std::string page_html(const PageContents& contents);

// Writes the page. A page that is there is replaced, as it can be made anew; throws Failure (kUsage) where there is
// another file, unless forced, or a folder or one of the inputs.
void write_page(const std::string& path, const std::string& page, bool force,
                const std::vector<std::string>& inputs = {});

// index.html of one recording.
std::string recording_page(const Recording& recording, const std::string& files_in);
// … of one that was just replayed into the folder, which the caller commits.
void write_recording_page(const Recording& recording, OutputFolder& out);

}  // namespace hlo
