#ifndef OPTRAIL_BASE_TEXT_CSV_READER_H_
#define OPTRAIL_BASE_TEXT_CSV_READER_H_

// CsvReader splits text into records of fields as RFC 4180 says: quoted fields
// may hold commas, line breaks and doubled quotes.
//
//   CsvReader reader(text, path);
//   std::vector<absl::string_view> fields;
//   while (true) {
//     OPTRAIL_ASSIGN_OR_RETURN(const bool more, reader.Next(fields));
//     if (!more) break;
//     if (fields.size() != 2) return reader.ErrorHere("expected two fields");
//     Use(fields[0], fields[1]);
//   }
//
// It does not know about headers, and the types of fields are the caller's.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace optrail {

// A field in a message: short, on one line, with its quotes.
std::string QuoteCsvField(absl::string_view text);

class CsvReader {
 public:
  // `text` and `name` must outlive it; `name` stands for the file in errors.
  CsvReader(absl::string_view text, absl::string_view name);

  // The line on which the current record starts, from 1.
  int64_t line() const { return line_; }

  // InvalidArgument: "NAME:LINE: what".
  absl::Status ErrorHere(absl::string_view what) const;

  // False at the end. Empty lines are skipped. Fields are views into the text
  // or, where quotes had to be undone, into a buffer that lives until the next
  // record.
  absl::StatusOr<bool> Next(std::vector<absl::string_view>& fields);

 private:
  struct Unquoted {
    size_t field, begin, size;
  };

  absl::Status TakeQuoted(std::vector<absl::string_view>& fields);

  absl::string_view rest_;
  absl::string_view name_;
  int64_t line_ = 1;
  int64_t next_line_ = 1;
  std::string buffer_;
  std::vector<Unquoted> unquoted_;
};

}  // namespace optrail

#endif  // OPTRAIL_BASE_TEXT_CSV_READER_H_
