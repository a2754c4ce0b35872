#include "tracker/history/evaluation/hostile_records.h"

#include <sys/stat.h>
#include <unistd.h>

#include <limits>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/file/file.h"
#include "google/protobuf/descriptor.h"
#include "tracker/history/history.h"
#include "tracker/history/record.h"
#include "tracker/proto/tombstone.pb.h"
#include "tracker/proto/triage.pb.h"
#include "tuning/proto/session.pb.h"

namespace optrail::tracker {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

constexpr int64_t kStart = 1'794'000'000LL * 1'000'000'000;
constexpr int64_t kMinute = 60LL * 1'000'000'000;

template <typename T, size_t n>
const T& Pick(Rng& rng, const T (&items)[n]) {
  return items[rng.UniformInt(n)];
}

bool OneIn(Rng& rng, int64_t n) { return rng.UniformInt(n) == 0; }

// Makes an id as NewRecordId does, the same for a seed.
std::string RecordIdAt(Rng& rng, int64_t unix_ns) {
  return absl::StrCat(NewRecordId(unix_ns).substr(0, 17),
                      absl::Hex(rng() >> 16, absl::kZeroPad12));
}

std::string HostileText(Rng& rng, const Lures& lures) {
  switch (rng.UniformInt(16)) {
    case 0:
      return lures.outside;
    case 1:
      return "../../../../evil";
    case 2:
      return absl::StrCat("whose place is ", lures.outside);
    case 3:
      return absl::StrCat("20261120T090807Z-1a2b/../../..", lures.outside);
    case 4:
      return std::string("nul\0/evil", 9);
    case 5:
      return "cut \xe2\x82";
    case 6:
      return "\xff\xfe\x80";
    case 7:
      return std::string(static_cast<size_t>(rng.UniformInt(20000)), 'x');
    case 8:
      return "</script><img src=x onerror=alert(1)>";
    case 9:
      return "| @team #12 ![x](https://evil.test/x.png) `\n\n# h";
    case 10:
      return "\x1b]0;title\x07\x1b[2J";
    case 11:
      return lures.run_ids.empty()
                 ? "20261120T090807Z-1a2b"
                 : lures.run_ids[rng.UniformInt(
                       static_cast<int64_t>(lures.run_ids.size()))];
    case 12:
      return "(((((((((a*)*)*)*)*)*)*)*)*";
    case 13:
      return "%s%n%d${HOME}$(touch evil)'; DROP TABLE runs; --";
    case 14:
      return "COM1.pb:stream";
    default:
      return "";
  }
}

double HostileNumber(Rng& rng) {
  static constexpr double kNumbers[] = {
      std::numeric_limits<double>::quiet_NaN(),
      std::numeric_limits<double>::infinity(),
      -std::numeric_limits<double>::infinity(),
      std::numeric_limits<double>::max(),
      std::numeric_limits<double>::denorm_min(),
      -1,
      -0.0,
      0,
      1e18,
      1e-300};
  return Pick(rng, kNumbers);
}

int64_t HostileInteger(Rng& rng) {
  static constexpr int64_t kNumbers[] = {std::numeric_limits<int64_t>::min(),
                                         std::numeric_limits<int64_t>::max(),
                                         std::numeric_limits<int32_t>::min(),
                                         std::numeric_limits<int32_t>::max(),
                                         -1,
                                         0,
                                         1,
                                         7'226'582'400LL * 1'000'000'000,
                                         1LL << 40};
  return Pick(rng, kNumbers);
}

class Mutator {
 public:
  Mutator(Rng& rng, const Lures& lures) : rng_(rng), lures_(lures) {}

  void Mutate(Message* message, int depth) {
    const Descriptor& type = *message->GetDescriptor();
    const FieldDescriptor& field =
        *type.field(static_cast<int>(rng_.UniformInt(type.field_count())));
    if (field.name() == "checksum") return;
    const Reflection& reflection = *message->GetReflection();
    if (OneIn(rng_, 12)) {
      reflection.ClearField(message, &field);
    } else if (field.is_repeated()) {
      // Mostly what is there; sometimes more, or very many of it.
      int64_t more = OneIn(rng_, 3) ? 1 + rng_.UniformInt(3) : 0;
      if (OneIn(rng_, 60)) more = 1 + rng_.UniformInt(3000);
      if (reflection.FieldSize(*message, &field) == 0) ++more;
      for (int64_t i = 0; i < more; ++i) Add(message, field, depth);
      if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE && depth < 8) {
        const int size = reflection.FieldSize(*message, &field);
        Mutate(reflection.MutableRepeatedMessage(
                   message, &field, static_cast<int>(rng_.UniformInt(size))),
               depth + 1);
      }
    } else if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      if (depth < 8) {
        Mutate(reflection.MutableMessage(message, &field), depth + 1);
      }
    } else {
      Set(message, field);
    }
    if (OneIn(rng_, 20)) {
      reflection.MutableUnknownFields(message)->AddLengthDelimited(
          static_cast<int>(900 + rng_.UniformInt(2000)),
          HostileText(rng_, lures_));
    }
  }

 private:
  void Set(Message* message, const FieldDescriptor& field) {
    const Reflection& r = *message->GetReflection();
    switch (field.cpp_type()) {
      case FieldDescriptor::CPPTYPE_STRING:
        return r.SetString(message, &field, HostileText(rng_, lures_));
      case FieldDescriptor::CPPTYPE_DOUBLE:
        return r.SetDouble(message, &field, HostileNumber(rng_));
      case FieldDescriptor::CPPTYPE_FLOAT:
        return r.SetFloat(message, &field, static_cast<float>(rng_.Gaussian()));
      case FieldDescriptor::CPPTYPE_INT64:
        return r.SetInt64(message, &field, HostileInteger(rng_));
      case FieldDescriptor::CPPTYPE_UINT64:
        return r.SetUInt64(message, &field,
                           static_cast<uint64_t>(HostileInteger(rng_)));
      case FieldDescriptor::CPPTYPE_INT32:
        return r.SetInt32(message, &field,
                          static_cast<int32_t>(HostileInteger(rng_)));
      case FieldDescriptor::CPPTYPE_UINT32:
        return r.SetUInt32(message, &field,
                           static_cast<uint32_t>(HostileInteger(rng_)));
      case FieldDescriptor::CPPTYPE_BOOL:
        return r.SetBool(message, &field, OneIn(rng_, 2));
      case FieldDescriptor::CPPTYPE_ENUM:
        return r.SetEnumValue(message, &field, EnumValue());
      case FieldDescriptor::CPPTYPE_MESSAGE:
        return;
    }
  }

  void Add(Message* message, const FieldDescriptor& field, int depth) {
    const Reflection& r = *message->GetReflection();
    switch (field.cpp_type()) {
      case FieldDescriptor::CPPTYPE_STRING:
        return r.AddString(message, &field, HostileText(rng_, lures_));
      case FieldDescriptor::CPPTYPE_DOUBLE:
        return r.AddDouble(message, &field, HostileNumber(rng_));
      case FieldDescriptor::CPPTYPE_FLOAT:
        return r.AddFloat(message, &field, static_cast<float>(rng_.Gaussian()));
      case FieldDescriptor::CPPTYPE_INT64:
        return r.AddInt64(message, &field, HostileInteger(rng_));
      case FieldDescriptor::CPPTYPE_UINT64:
        return r.AddUInt64(message, &field,
                           static_cast<uint64_t>(HostileInteger(rng_)));
      case FieldDescriptor::CPPTYPE_INT32:
        return r.AddInt32(message, &field,
                          static_cast<int32_t>(HostileInteger(rng_)));
      case FieldDescriptor::CPPTYPE_UINT32:
        return r.AddUInt32(message, &field,
                           static_cast<uint32_t>(HostileInteger(rng_)));
      case FieldDescriptor::CPPTYPE_BOOL:
        return r.AddBool(message, &field, OneIn(rng_, 2));
      case FieldDescriptor::CPPTYPE_ENUM:
        return r.AddEnumValue(message, &field, EnumValue());
      case FieldDescriptor::CPPTYPE_MESSAGE: {
        // Of those that are there already, so that names meet.
        const int size = r.FieldSize(*message, &field);
        std::string copy;
        if (size > 0) {
          copy = r.GetRepeatedMessage(*message, &field,
                                      static_cast<int>(rng_.UniformInt(size)))
                     .SerializePartialAsString();
        }
        Message* added = r.AddMessage(message, &field);
        added->ParsePartialFromString(copy);
        return;
      }
    }
  }

  // Known ones, and those of a newer version.
  int EnumValue() {
    return static_cast<int>(OneIn(rng_, 6) ? 1000 + rng_.UniformInt(100)
                                           : rng_.UniformInt(12));
  }

  Rng& rng_;
  const Lures& lures_;
};

template <typename M>
void Plant(Rng& rng, const Lures& lures, const std::string& dir,
           absl::string_view folder, absl::string_view id, M message) {
  MakeHostile(rng, lures, &message);
  std::string path =
      JoinPath(dir, folder, id.substr(0, 4), absl::StrCat(id, ".pb"));
  if (OneIn(rng, 10)) {
    // A name that is none of ours.
    static constexpr const char* kNames[] = {"x.pb",
                                             "..pb",
                                             "-rf.pb",
                                             "a b\n.pb",
                                             "\xff.pb",
                                             "CON.pb",
                                             "20261120T090807Z-.pb",
                                             "20261120T090807Z-1a2b.pb"};
    path = JoinPath(dir, folder, "2026", Pick(rng, kNames));
  }
  OPTRAIL_CHECK(CreateDirectories(DirectoryOf(path)).ok());
  std::string bytes = message.SerializePartialAsString();
  if (OneIn(rng, 15)) bytes.resize(bytes.size() / 2);
  bytes = WithChecksum(std::move(bytes));
  if (OneIn(rng, 15)) bytes.resize(bytes.size() / 2);
  (void)WriteFileAtomically(path, bytes).ok();
}

// A link that cannot be made is one oddity less.
void Link(const std::string& target, const std::string& path) {
  if (symlink(target.c_str(), path.c_str()) != 0) return;
}

// Plants something that is no file, or no file of ours.
void PlantOddity(Rng& rng, const Lures& lures, const std::string& dir) {
  static constexpr const char* kFolders[] = {"runs", "sessions", "triage",
                                             "tombstones"};
  const std::string folder = JoinPath(dir, Pick(rng, kFolders), "2026");
  OPTRAIL_CHECK(CreateDirectories(folder).ok());
  const std::string path = JoinPath(
      folder,
      absl::StrCat(RecordIdAt(rng, kStart + rng.UniformInt(kMinute)), ".pb"));
  switch (rng.UniformInt(6)) {
    case 0:
      (void)mkfifo(path.c_str(), 0600);
      return;
    case 1:
      (void)mkdir(path.c_str(), 0700);
      return;
    case 2:
      Link(lures.outside, path);
      return;
    case 3:
      Link("..", JoinPath(folder, "loop"));
      return;
    case 4:
      Link("/dev/zero", path);
      return;
    default:
      (void)WriteFileAtomically(path, std::string(10, '\0')).ok();
      return;
  }
}

std::string JsonText(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    if (static_cast<unsigned char>(c) >= 0x20) quoted += c;
  }
  return quoted + "\"";
}

std::string JsonValue(Rng& rng, const Lures& lures, int depth) {
  switch (rng.UniformInt(depth > 3 ? 6 : 9)) {
    case 0:
      return "null";
    case 1: {
      static constexpr const char* kNumbers[] = {"1e999",
                                                 "-1e999",
                                                 "NaN",
                                                 "-Infinity",
                                                 "1e308",
                                                 "-1",
                                                 "99999999999999999999999999",
                                                 "0",
                                                 "3.5"};
      return Pick(rng, kNumbers);
    }
    case 2:
    case 3:
      return JsonText(HostileText(rng, lures));
    case 4:
      return "true";
    case 5: {
      const int64_t deep = OneIn(rng, 4) ? 200000 : rng.UniformInt(80);
      return absl::StrCat(std::string(static_cast<size_t>(deep), '['),
                          std::string(static_cast<size_t>(deep), ']'));
    }
    case 6:
      return absl::StrCat("[", JsonValue(rng, lures, depth + 1), ",",
                          JsonValue(rng, lures, depth + 1), "]");
    default:
      return absl::StrCat("{", JsonText(HostileText(rng, lures)), ":",
                          JsonValue(rng, lures, depth + 1), "}");
  }
}

}  // namespace

proto::Run PlausibleRun(Rng& rng, int minute) {
  proto::Run run;
  run.set_started_unix_ns(kStart + minute * kMinute);
  run.set_run_id(RecordIdAt(rng, run.started_unix_ns()));
  run.set_suite("smoke");
  run.mutable_hardware()->set_id("amd-epyc-zen4-2c");
  run.mutable_commit()->set_id(
      absl::StrCat(absl::Hex(minute + 1, absl::kZeroPad8), "deadbeef"));
  run.mutable_commit()->set_branch("main");
  run.mutable_commit()->set_first_parent_position(minute);
  for (const char* name : {"BM_Sort", "BM_Scan", "BM_Join"}) {
    proto::BenchmarkResult* result = run.add_results();
    result->mutable_key()->set_operator_name(name);
    result->set_outcome(proto::OK);
    for (int process = 0; process < 5; ++process) {
      proto::Measurement* measurement = result->add_measurements();
      measurement->set_calls_per_sample(10);
      for (int i = 0; i < 3; ++i) {
        measurement->add_sample_ns(10000 + rng.UniformInt(200));
      }
      proto::MetricSamples* metric = measurement->add_metrics();
      metric->set_metric("bytes_per_second");
      metric->set_unit("B/s");
      metric->set_direction(proto::HIGHER_IS_BETTER);
      metric->add_values(1e9 + static_cast<double>(rng.UniformInt(1000000)));
    }
  }
  return run;
}

void MakeHostile(Rng& rng, const Lures& lures, Message* message) {
  Mutator mutator(rng, lures);
  for (int64_t i = rng.UniformInt(8); i >= 0; --i) mutator.Mutate(message, 0);
}

void PlantHostileRecord(Rng& rng, const Lures& lures, const std::string& dir) {
  const int minute = static_cast<int>(rng.UniformInt(2000));
  const std::string id = RecordIdAt(rng, kStart + minute * kMinute);
  if (OneIn(rng, 25)) return PlantOddity(rng, lures, dir);
  switch (rng.UniformInt(8)) {
    case 0: {
      proto::Session session;
      session.set_session_id(id);
      session.set_started_unix_ns(kStart);
      for (int i = 0; i < 4; ++i) session.add_trials()->set_time_ns(100 + i);
      return Plant(rng, lures, dir, "sessions", id, session);
    }
    case 1: {
      proto::TriageRecord triage;
      triage.set_record_id(id);
      triage.set_kind(static_cast<proto::TriageKind>(rng.UniformInt(6)));
      triage.set_pattern(".*");
      return Plant(rng, lures, dir, "triage", id, triage);
    }
    case 2: {
      proto::Tombstones tombstones;
      tombstones.set_tombstones_id(id);
      for (const std::string& run_id : lures.run_ids) {
        proto::Tombstone* tombstone = tombstones.add_tombstones();
        tombstone->set_run_id(run_id);
        tombstone->set_kind(proto::REMOVED);
      }
      return Plant(rng, lures, dir, "tombstones", id, tombstones);
    }
    default: {
      proto::Run run = PlausibleRun(rng, minute % 20);
      run.set_run_id(id);
      return Plant(rng, lures, dir, "runs", id, run);
    }
  }
}

std::string HostileJson(Rng& rng, const Lures& lures) {
  std::string benchmarks;
  for (int64_t i = rng.UniformInt(6); i >= 0; --i) {
    absl::StrAppend(
        &benchmarks, benchmarks.empty() ? "" : ",",
        "{\"name\":", JsonText(HostileText(rng, lures)),
        ",\"real_time\":", OneIn(rng, 3) ? JsonValue(rng, lures, 0) : "12.5",
        ",\"cpu_time\":12,\"iterations\":",
        OneIn(rng, 3) ? JsonValue(rng, lures, 0) : "100",
        ",\"time_unit\":\"ns\",", JsonText(HostileText(rng, lures)), ":",
        JsonValue(rng, lures, 0), "}");
  }
  std::string json =
      absl::StrCat("{\"context\":{\"date\":", JsonText(HostileText(rng, lures)),
                   ",\"num_cpus\":", JsonValue(rng, lures, 0),
                   ",\"caches\":", JsonValue(rng, lures, 0),
                   ",\"load_avg\":", JsonValue(rng, lures, 0),
                   "},\"benchmarks\":[", benchmarks, "]}");
  if (OneIn(rng, 5))
    json.resize(
        static_cast<size_t>(rng.UniformInt(static_cast<int64_t>(json.size()))));
  return json;
}

}  // namespace optrail::tracker
