#include "tracker/history/run_results.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "base/status_macros.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/wire_format_lite.h"
#include "tracker/history/record.h"
#include "tracker/history/record_kinds.h"
#include "tracker/series/series_key.h"

namespace optrail::tracker {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

// The stored key of a stored result; nullopt unless there is just one, since
// several are merged into one.
absl::optional<absl::string_view> StoredKeyOf(absl::string_view result) {
  CodedInputStream input(reinterpret_cast<const uint8_t*>(result.data()),
                         static_cast<int>(result.size()));
  absl::optional<absl::string_view> key;
  while (const uint32_t tag = input.ReadTag()) {
    if (WireFormatLite::GetTagFieldNumber(tag) !=
        proto::BenchmarkResult::kKeyFieldNumber) {
      if (!WireFormatLite::SkipField(&input, tag)) return absl::nullopt;
      continue;
    }
    uint32_t length = 0;
    if (key.has_value() ||
        WireFormatLite::GetTagWireType(tag) !=
            WireFormatLite::WIRETYPE_LENGTH_DELIMITED ||
        !input.ReadVarint32(&length)) {
      return absl::nullopt;
    }
    key = result.substr(input.CurrentPosition(), length);
    if (!input.Skip(static_cast<int>(length))) return absl::nullopt;
  }
  return key;
}

}  // namespace

absl::StatusOr<std::unique_ptr<RunResults>> RunResults::Read(
    const History& history, absl::string_view run_id) {
  OPTRAIL_ASSIGN_OR_RETURN(const std::string path,
                           PlaceOf(history.dir(), RunKind::kFolder, run_id));
  const auto named = [&](const absl::Status& status) {
    return absl::Status(status.code(),
                        absl::StrCat(path, ": ", status.message()));
  };
  absl::StatusOr<std::string> bytes = history.store().Read(path);
  if (!bytes.ok()) return named(bytes.status());
  auto results = std::unique_ptr<RunResults>(new RunResults());
  results->bytes_ = *std::move(bytes);
  const absl::Status decoded = results->Decode(history.dir(), path);
  if (!decoded.ok()) return named(decoded);
  return results;
}

absl::Status RunResults::Decode(const std::string& dir,
                                const std::string& path) {
  OPTRAIL_RETURN_IF_ERROR(DecodeRecordApart(proto::Run::kResultsFieldNumber,
                                            bytes_, &run_, &results_));
  BadFile unused;
  OPTRAIL_RETURN_IF_ERROR(CheckPlace<RunKind>(dir, path, run_, &unused));
  by_stored_key_.reserve(results_.size());
  for (size_t i = 0; i < results_.size(); ++i) {
    if (const auto key = StoredKeyOf(results_[i])) {
      by_stored_key_.emplace(*key, i);
    }
  }
  return absl::OkStatus();
}

void RunResults::AddTexts() {
  if (has_texts_) return;
  has_texts_ = true;
  for (size_t i = 0; i < results_.size(); ++i) {
    proto::BenchmarkResult result;
    const auto key = StoredKeyOf(results_[i]);
    const absl::Status decoded = key ? DecodePart(*key, result.mutable_key())
                                     : DecodePart(results_[i], &result);
    if (decoded.ok()) by_text_.emplace(CanonicalText(result.key()), i);
  }
}

const proto::BenchmarkResult* RunResults::Find(const proto::BenchmarkKey& key) {
  size_t place = 0;
  const auto stored = by_stored_key_.find(key.SerializeAsString());
  if (stored != by_stored_key_.end()) {
    place = stored->second;
  } else {
    AddTexts();
    const auto text = by_text_.find(CanonicalText(key));
    if (text == by_text_.end()) return nullptr;
    place = text->second;
  }
  const auto [at, is_new] = parsed_.try_emplace(place);
  proto::Run& one = at->second;
  if (is_new && (!DecodePart(results_[place], one.add_results()).ok() ||
                 !ValidateRun(one).ok())) {
    one.Clear();
  }
  return one.results().empty() ? nullptr : &one.results(0);
}

}  // namespace optrail::tracker
