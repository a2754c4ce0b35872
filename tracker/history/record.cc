#include "tracker/history/record.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/hash/crc32c.h"
#include "base/status_macros.h"
#include "base/text/utf8.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/wire_format_lite.h"
#include "tracker/series/series_key.h"
#include "tuning/proto/canonical.h"

namespace optrail::tracker {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

// Field 100, fixed32: two bytes of tag and four of checksum, little-endian. Of
// a record of format 2 it is field 101, and so on: readers of before find no
// checksum where they know of one, and refuse what they would read wrongly. The
// checksum of format 1 covers all bytes before the tag; since then the tag,
// too.
constexpr int kChecksumField = 100;
static_assert(proto::Run::kChecksumFieldNumber == kChecksumField);
static_assert(proto::Session::kChecksumFieldNumber == kChecksumField);
constexpr char kTag[] = {'\xa5', '\x06'};
constexpr size_t kTrailerBytes = 6;
constexpr int kNewestFormat = 2;
// The number of fields whose tags differ in the first byte alone.
constexpr int kMostFormats = 12;

// What the last field of a record says; 0 if it is no checksum.
int FormatOf(absl::string_view bytes) {
  if (bytes.size() < kTrailerBytes) return 0;
  const absl::string_view tag = bytes.substr(bytes.size() - kTrailerBytes, 2);
  // The number of a field is above the three bits of its wire type.
  const int beyond =
      static_cast<unsigned char>(tag[0]) - static_cast<unsigned char>(kTag[0]);
  if (tag[1] != kTag[1] || beyond < 0 || beyond % 8 != 0) return 0;
  const int format = 1 + beyond / 8;
  return format <= kMostFormats ? format : 0;
}

std::string WithChecksumOf(int format, std::string bytes) {
  const size_t body_bytes = bytes.size();
  bytes.push_back(static_cast<char>(kTag[0] + 8 * (format - 1)));
  bytes.push_back(kTag[1]);
  const uint32_t checksum = Crc32c(
      format == 1 ? absl::string_view(bytes).substr(0, body_bytes) : bytes);
  for (int shift = 0; shift < 32; shift += 8) {
    bytes.push_back(static_cast<char>(checksum >> shift & 0xff));
  }
  return bytes;
}

// Whether a reader of format 1, which drops the fields that it does not know,
// would take the benchmark or the task for another one.
bool IsNewToFormat1(const proto::BenchmarkKey& key) {
  return !key.backend().empty() || key.launch_mode() != 0 ||
         !key.objective().empty() || key.devices() != 0 ||
         key.shape().attributes_size() > 0;
}

bool IsNewToFormat1(const proto::Session& session) {
  const proto::Task& task = session.task();
  return !task.backend().empty() || task.launch_mode() != 0 ||
         task.devices() != 0 || task.shape().attributes_size() > 0 ||
         !tuning::ObjectivesText(session.objectives()).empty();
}

// The oldest format whose readers understand the record.
int FormatFor(const google::protobuf::Message& message) {
  if (const auto* run = dynamic_cast<const proto::Run*>(&message)) {
    return std::any_of(run->results().begin(), run->results().end(),
                       [](const proto::BenchmarkResult& result) {
                         return IsNewToFormat1(result.key());
                       })
               ? 2
               : 1;
  }
  if (const auto* session = dynamic_cast<const proto::Session*>(&message)) {
    return IsNewToFormat1(*session) ? 2 : 1;
  }
  return 1;
}

uint32_t LittleEndian32(absl::string_view bytes) {
  uint32_t value = 0;
  for (int i = 3; i >= 0; --i) {
    value = value << 8 | static_cast<unsigned char>(bytes[i]);
  }
  return value;
}

absl::StatusOr<absl::string_view> CheckedBody(absl::string_view bytes) {
  if (bytes.size() > std::numeric_limits<int>::max()) {
    return absl::DataLossError("it is too large for a record");
  }
  if (bytes.empty()) return absl::DataLossError("the file is empty");
  if (bytes.size() < kTrailerBytes) {
    return absl::DataLossError(
        absl::StrCat("only ", bytes.size(), " bytes: the file was cut off"));
  }
  const absl::string_view body = bytes.substr(0, bytes.size() - kTrailerBytes);
  const absl::string_view trailer = bytes.substr(body.size());
  const int format = FormatOf(bytes);
  if (format == 0) {
    return absl::DataLossError(
        "it does not end with a checksum: the file was cut off or is no "
        "record of a history");
  }
  const uint32_t stored = LittleEndian32(trailer.substr(2));
  const uint32_t computed =
      Crc32c(bytes.substr(0, body.size() + (format == 1 ? 0 : 2)));
  if (stored != computed) {
    return absl::DataLossError(
        absl::StrCat("its checksum is 0x", absl::Hex(computed, absl::kZeroPad8),
                     " and should be 0x", absl::Hex(stored, absl::kZeroPad8),
                     ": bytes were changed"));
  }
  if (format > kNewestFormat) {
    return absl::FailedPreconditionError(absl::StrCat(
        "it was written by a newer Optrail: its format is ", format,
        ", this one reads up to ", kNewestFormat, "; next: use the newer one"));
  }
  return body;
}

// A record of so many bytes can't take too much memory.
constexpr size_t kAlwaysDecodedBytes = 1 << 20;
constexpr int64_t kMostDecodedBytes = 2LL << 30;
constexpr int kMostDepth = 100;  // as protobuf's own

// Takes from `budget` what decoding `bytes` allocates, roughly: an empty
// message is two bytes in the file and some hundred in memory. False where it
// is not enough. Bytes that are no message are for the decoder to refuse.
bool FitsMemory(const google::protobuf::Descriptor& type,
                absl::string_view bytes, int depth, int64_t* budget) {
  using google::protobuf::FieldDescriptor;
  constexpr int64_t kMessageBytes = 200, kTextBytes = 48, kScalarBytes = 24;
  if (depth > kMostDepth) return true;
  CodedInputStream input(reinterpret_cast<const uint8_t*>(bytes.data()),
                         static_cast<int>(bytes.size()));
  while (true) {
    const uint32_t tag = input.ReadTag();
    if (tag == 0) return true;
    if (WireFormatLite::GetTagWireType(tag) !=
        WireFormatLite::WIRETYPE_LENGTH_DELIMITED) {
      if (!WireFormatLite::SkipField(&input, tag)) return true;
      *budget -= kScalarBytes;
    } else {
      uint32_t length = 0;
      if (!input.ReadVarint32(&length)) return true;
      const size_t start = static_cast<size_t>(input.CurrentPosition());
      if (length > bytes.size() - start) return true;
      const FieldDescriptor* field =
          type.FindFieldByNumber(WireFormatLite::GetTagFieldNumber(tag));
      if (field != nullptr && field->message_type() != nullptr) {
        *budget -= kMessageBytes;
        if (!FitsMemory(*field->message_type(), bytes.substr(start, length),
                        depth + 1, budget)) {
          return false;
        }
      } else if (field != nullptr && field->is_packable()) {
        *budget -= 8 * static_cast<int64_t>(length);  // of a byte each
      } else {
        *budget -= kTextBytes + static_cast<int64_t>(length);
      }
      if (!input.Skip(static_cast<int>(length))) return true;
    }
    if (*budget < 0) return false;
  }
}

absl::Status CheckMemory(const google::protobuf::Message& message,
                         absl::string_view bytes) {
  int64_t budget = kMostDecodedBytes;
  if (bytes.size() <= kAlwaysDecodedBytes ||
      FitsMemory(*message.GetDescriptor(), bytes, 1, &budget)) {
    return absl::OkStatus();
  }
  return absl::DataLossError(absl::StrCat("its contents would take more than ",
                                          kMostDecodedBytes >> 20,
                                          " MiB of memory"));
}

absl::Status NoMessage(const google::protobuf::Message& message) {
  return absl::DataLossError(absl::StrCat("its contents are no valid ",
                                          message.GetTypeName(), " message"));
}

// Decodes a record without the fields that `is_apart` takes: it is called with
// the number, the tag and all bytes of each field.
template <typename IsApart>
absl::Status DecodeRest(absl::string_view bytes,
                        google::protobuf::Message* message,
                        const IsApart& is_apart) {
  OPTRAIL_ASSIGN_OR_RETURN(const absl::string_view body, CheckedBody(bytes));
  CodedInputStream input(reinterpret_cast<const uint8_t*>(body.data()),
                         static_cast<int>(body.size()));
  std::string kept;
  while (true) {
    const int start = input.CurrentPosition();
    const uint32_t tag = input.ReadTag();
    if (tag == 0) break;
    if (!WireFormatLite::SkipField(&input, tag)) return NoMessage(*message);
    const absl::string_view field =
        body.substr(start, input.CurrentPosition() - start);
    if (!is_apart(WireFormatLite::GetTagFieldNumber(tag), tag, field)) {
      kept.append(field.data(), field.size());
    }
  }
  if (input.CurrentPosition() != static_cast<int>(body.size())) {
    return NoMessage(*message);
  }
  return DecodePart(kept, message);
}

// Returns the contents of a length-delimited field, without tag and length.
absl::string_view ContentsOf(absl::string_view field) {
  CodedInputStream input(reinterpret_cast<const uint8_t*>(field.data()),
                         static_cast<int>(field.size()));
  uint32_t length = 0;
  input.ReadTag();
  input.ReadVarint32(&length);
  return field.substr(input.CurrentPosition(), length);
}

template <typename T>
absl::Status Wrong(absl::string_view field, T value,
                   absl::string_view expected) {
  return absl::InvalidArgumentError(
      absl::StrCat(field, " is ", value, ", expected ", expected));
}

absl::Status CheckTime(absl::string_view field, double value) {
  if (std::isfinite(value) && value >= 0) return absl::OkStatus();
  return Wrong(field, value, "a finite time of at least 0");
}

absl::Status CheckMeasurement(const proto::Measurement& measurement) {
  for (const int64_t sample : measurement.sample_ns()) {
    if (sample < 0) return Wrong("sample_ns", sample, "a time of at least 0");
  }
  if (measurement.sample_ns_size() > 0 && measurement.calls_per_sample() <= 0) {
    return Wrong("calls_per_sample", measurement.calls_per_sample(),
                 "at least 1");
  }
  if (measurement.has_median_ns()) {
    OPTRAIL_RETURN_IF_ERROR(CheckTime("median_ns", measurement.median_ns()));
  }
  for (const proto::MetricSamples& metric : measurement.metrics()) {
    for (const double value : metric.values()) {
      if (std::isfinite(value)) continue;
      return Wrong(absl::StrCat("metric '", metric.metric(), "'"), value,
                   "a finite number");
    }
  }
  for (const proto::MeterWindow& window : measurement.windows()) {
    const std::string field = absl::StrCat("window of '", window.metric(), "'");
    if (!std::isfinite(window.value())) {
      return Wrong(field, window.value(), "a finite number");
    }
    if (!std::isfinite(window.idle_watts()) || window.idle_watts() < 0) {
      return Wrong(absl::StrCat(field, ", idle_watts"), window.idle_watts(),
                   "a finite power of at least 0");
    }
    if (window.duration_ns() < 0) {
      return Wrong(absl::StrCat(field, ", duration_ns"), window.duration_ns(),
                   "a time of at least 0");
    }
  }
  return absl::OkStatus();
}

// `where` is called only for the message of an error.
template <typename Where>
absl::Status CheckMeasurements(
    const google::protobuf::RepeatedPtrField<proto::Measurement>& measurements,
    const Where& where) {
  for (int i = 0; i < measurements.size(); ++i) {
    const absl::Status status = CheckMeasurement(measurements[i]);
    if (status.ok()) continue;
    return absl::Status(status.code(), absl::StrCat(where(), ", measurement ",
                                                    i, ": ", status.message()));
  }
  return absl::OkStatus();
}

}  // namespace

std::string EncodeRecord(const google::protobuf::Message& message) {
  std::string bytes;
  bytes.reserve(message.ByteSizeLong() + kTrailerBytes);
  message.AppendToString(&bytes);
  return WithChecksumOf(FormatFor(message), std::move(bytes));
}

std::string WithChecksum(std::string bytes) {
  return WithChecksumOf(1, std::move(bytes));
}

absl::Status DecodeRecord(absl::string_view bytes,
                          google::protobuf::Message* message) {
  OPTRAIL_ASSIGN_OR_RETURN(const absl::string_view body, CheckedBody(bytes));
  return DecodePart(body, message);
}

absl::Status DecodeRecordWithout(std::initializer_list<int> field_numbers,
                                 absl::string_view bytes,
                                 google::protobuf::Message* message,
                                 int* skipped_count) {
  *skipped_count = 0;
  return DecodeRest(
      bytes, message, [&](int number, uint32_t, absl::string_view) {
        const bool skipped =
            std::find(field_numbers.begin(), field_numbers.end(), number) !=
            field_numbers.end();
        *skipped_count += skipped;
        return skipped;
      });
}

absl::Status DecodeRecordApart(int field_number, absl::string_view bytes,
                               google::protobuf::Message* message,
                               std::vector<absl::string_view>* apart) {
  return DecodeRest(bytes, message,
                    [&](int number, uint32_t tag, absl::string_view field) {
                      if (number != field_number) return false;
                      if (WireFormatLite::GetTagWireType(tag) ==
                          WireFormatLite::WIRETYPE_LENGTH_DELIMITED) {
                        apart->push_back(ContentsOf(field));
                      }
                      return true;
                    });
}

absl::Status DecodePart(absl::string_view bytes,
                        google::protobuf::Message* message) {
  OPTRAIL_RETURN_IF_ERROR(CheckMemory(*message, bytes));
  if (!message->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return NoMessage(*message);
  }
  return absl::OkStatus();
}

RecordDamage RecordDamageOf(absl::string_view bytes) {
  if (FormatOf(bytes) == 0) return RecordDamage::kCutOff;
  return absl::IsFailedPrecondition(CheckedBody(bytes).status())
             ? RecordDamage::kNewerFormat
             : RecordDamage::kChanged;
}

absl::Status ValidateRun(const proto::Run& run) {
  for (const proto::BenchmarkResult& result : run.results()) {
    OPTRAIL_RETURN_IF_ERROR(CheckMeasurements(result.measurements(), [&] {
      return absl::StrCat("benchmark '", DisplayName(result.key()), "'");
    }));
  }
  return absl::OkStatus();
}

absl::Status CheckRunNames(const proto::Run& run) {
  for (const auto& [field, name] :
       {std::make_pair("suite", &run.suite()),
        std::make_pair("hardware.id", &run.hardware().id()),
        std::make_pair("commit.branch", &run.commit().branch())}) {
    // Records replace what is no UTF-8 by themselves.
    const std::string escaped = EscapeForTerminal(ReplaceInvalidUtf8(*name));
    if (escaped == ReplaceInvalidUtf8(*name)) continue;
    return Wrong(field, absl::StrCat("'", escaped, "'"),
                 "a name in one line, without control characters");
  }
  return absl::OkStatus();
}

absl::Status ValidateSession(const proto::Session& session) {
  for (int i = 0; i < session.trials_size(); ++i) {
    const proto::Trial& trial = session.trials(i);
    const auto where = [&] {
      return absl::StrCat("trial ", i, " (",
                          tuning::CanonicalText(trial.config()), ")");
    };
    if (trial.has_time_ns()) {
      const absl::Status status = CheckTime("time_ns", trial.time_ns());
      if (!status.ok()) {
        return absl::Status(status.code(),
                            absl::StrCat(where(), ": ", status.message()));
      }
    }
    OPTRAIL_RETURN_IF_ERROR(CheckMeasurements(trial.measurements(), where));
  }
  return absl::OkStatus();
}

}  // namespace optrail::tracker
