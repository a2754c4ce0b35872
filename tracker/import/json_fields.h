#ifndef OPTRAIL_TRACKER_IMPORT_JSON_FIELDS_H_
#define OPTRAIL_TRACKER_IMPORT_JSON_FIELDS_H_

// The fields of one JSON object of an imported file, with errors that name
// file, object, field, what was found and what was expected.
//
//   const JsonFields entry(json, "run.json: benchmark 'BM_x'");
//   OPTRAIL_ASSIGN_OR_RETURN(const double mean,
//                            entry.Number("mean", 0, "a time of at least 0"));

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "nlohmann/json.hpp"
#include "tracker/import/collected.h"
#include "tracker/proto/run.pb.h"

namespace optrail::tracker {

// Names an entry of a file in errors: "PATH: WHAT 'NAME'", or its number.
std::string EntryName(absl::string_view path, absl::string_view what,
                      absl::string_view name, size_t index);

// Sets the id where `id` is a full hash.
void SetCommit(const std::string& id, proto::Commit* commit);

class JsonFields {
 public:
  // What is no object has no fields. `json` must outlive it.
  JsonFields(const nlohmann::json& json, std::string where)
      : json_(&json), where_(std::move(where)) {}

  const nlohmann::json& json() const { return *json_; }
  const std::string& where() const { return where_; }

  // "" if absent or no text; false if absent or no boolean.
  std::string Text(const char* field) const;
  bool Flag(const char* field) const;
  // Absent if it is no integer from 0 to 2^53.
  absl::optional<int64_t> Count(const char* field) const;
  // Sets when the run began. OK without the field or for "".
  absl::Status ReadStart(const char* field, proto::Run& run) const;
  // null if absent.
  const nlohmann::json* Find(const char* field) const;
  bool Has(const char* field) const { return Find(field) != nullptr; }

  // A text that is not empty.
  absl::StatusOr<std::string> Name(const char* field) const;
  // The object in `field`: an error if there is none, or one without fields.
  absl::StatusOr<JsonFields> Object(const char* field) const;
  JsonFields Part(const char* field) const;

  // A finite number of at least `minimum`.
  absl::StatusOr<double> Number(const char* field, double minimum,
                                absl::string_view expected) const;
  // An array of such numbers; absent: empty.
  absl::StatusOr<std::vector<double>> Numbers(const char* field, double minimum,
                                              absl::string_view expected) const;

  // The same of `value`, which `field` names in errors.
  absl::StatusOr<std::vector<double>> NumbersIn(
      const nlohmann::json& value, absl::string_view field, double minimum,
      absl::string_view expected) const;

  // The array that the file is about; `flag` is what makes the tool write it.
  absl::StatusOr<const nlohmann::json*> Results(const char* field,
                                                absl::string_view flag) const;
  // Appends the times in seconds of an array, of `calls` calls each; where it
  // is absent or empty, the aggregate is the number in `aggregate`.
  absl::Status AddSeconds(const char* field, double calls,
                          const char* aggregate, Collected& to) const;
  // Sets the one time, in units of `ns`, that a file has instead of samples;
  // `what` names it: "median".
  absl::Status SetAggregate(const char* what, double value, double ns,
                            Collected& to) const;
  // Appends a time in units of `ns`, of each of `calls` calls.
  absl::Status AddTime(absl::string_view field, double value, double ns,
                       double calls, Collected& to) const;

  // For formats in which a benchmark has one entry.
  absl::Status GivenTwice(absl::string_view benchmark) const;
  // "WHERE: FIELD FOUND, expected EXPECTED".
  absl::Status Wrong(absl::string_view field, absl::string_view found,
                     absl::string_view expected) const;

 private:
  const nlohmann::json* json_;
  std::string where_;
};

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_IMPORT_JSON_FIELDS_H_
