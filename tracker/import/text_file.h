#ifndef OPTRAIL_TRACKER_IMPORT_TEXT_FILE_H_
#define OPTRAIL_TRACKER_IMPORT_TEXT_FILE_H_

// The lines of an imported text, with errors that name file and line.
//
//   TextLines lines(file);
//   return lines.ForEach([&](absl::string_view line) {
//     return line == "ok" ? absl::OkStatus()
//                         : lines.Wrong("the line", line, "ok");
//   });

#include <initializer_list>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "tracker/import/import.h"

namespace optrail::tracker {

class TextLines {
 public:
  // `file` must outlive it.
  explicit TextLines(const ImportedFile& file) : file_(file) {}

  // Calls `read` with each line, without its end, until one fails. Before that
  // InvalidArgument for what is no UTF-8 or holds a NUL: names from it are
  // stored in records, which hold text.
  absl::Status ForEach(
      absl::FunctionRef<absl::Status(absl::string_view line)> read);

  // The number of the current line, from 1.
  int number() const { return number_; }

  // "FILE:LINE: FIELD is 'FOUND', expected EXPECTED", of the current line.
  absl::Status Wrong(absl::string_view field, absl::string_view found,
                     absl::string_view expected) const;

 private:
  const ImportedFile& file_;
  int number_ = 0;
};

// Returns whether `content` begins with `first`, white space aside, and all
// `words` stand in its first 64 KiB: what an importer knows its files by.
bool LooksLike(absl::string_view content, char first,
               std::initializer_list<absl::string_view> words);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_IMPORT_TEXT_FILE_H_
