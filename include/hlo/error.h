// The one exception of the library.
#pragma once
#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

#include "hlo/export.h"

HLO_API_BEGIN

enum class ErrorKind {
  bad_input,    // a text, file or module that is not what it should be
  unsupported,  // right, and more than this library or machine can do
  usage,        // a call that cannot mean anything: a wrong name, a removed instruction, two threads on one universe
  internal,     // a fault of the library's
  interrupted,  // a Watch said stop (hlo/progress.h)
};
HLO_EXPORT const char* word(ErrorKind kind);

// Where in a text: lines and columns count from 1, columns in bytes; line 0: unknown.
struct Place {
  std::string file;
  size_t line = 0, column = 0;
  std::string text() const { return line ? file + ":" + std::to_string(line) + ":" + std::to_string(column) : file; }
};

// One of several errors of a text.
struct Diagnostic {
  Place place;
  std::string message, hint;
};

// Every failure of the library, memory that is not there (unsupported) included. Exceptions of callbacks are not
// wrapped: they come out as they went in.
class HLO_EXPORT Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message, std::vector<Diagnostic> diagnostics = {});
  Error(const Error&);
  Error& operator=(const Error&);
  ~Error() override;
  ErrorKind kind() const noexcept { return kind_; }
  // All that were found, where the input was a text; at least one for errors with a place.
  const std::vector<Diagnostic>& diagnostics() const noexcept { return diagnostics_; }
  // Of the first of them; without a line where no place is known.
  Place place() const { return diagnostics_.empty() ? Place() : diagnostics_[0].place; }
  std::string hint() const { return diagnostics_.empty() ? std::string() : diagnostics_[0].hint; }

 private:
  ErrorKind kind_;
  std::vector<Diagnostic> diagnostics_;
};

HLO_API_END
