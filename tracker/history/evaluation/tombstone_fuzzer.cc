// Whatever the bytes of a tombstones file are, they are read without a crash,
// and a merge keeps away the runs that they say were removed, and no other.
//
//   bazel build --config=fuzz //tracker/history/evaluation:tombstone_fuzzer
//   tar -C /tmp -xzf tracker/history/evaluation/tombstone_corpus.tar.gz
//   bazel-bin/tracker/history/evaluation/tombstone_fuzzer /tmp/tombstone_corpus
//
// The input is read three times: as the file, as the body of a file whose
// checksum is right, and as a body that also has the id of its place.

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/file/file.h"
#include "base/testing/fault_injecting_file_system.h"
#include "google/protobuf/stubs/logging.h"
#include "tracker/history/history.h"
#include "tracker/history/record.h"

namespace optrail::tracker {
namespace {

constexpr char kId[] = "20261120T110000Z-3f2e1d0c9b8a";
constexpr char kRunId[] = "20261120T090807Z-1a2b3c4d5e6f";

std::string WithId(absl::string_view body) {
  proto::Tombstones message;
  if (!message.ParseFromArray(body.data(), static_cast<int>(body.size()))) {
    return std::string(body);
  }
  message.clear_checksum();
  message.set_tombstones_id(kId);
  return EncodeRecord(message);
}

void ReadAsFile(absl::string_view bytes) {
  FaultInjectingFileSystem fs;
  const std::string dir = "buried/tombstones/2026";
  OPTRAIL_CHECK(CreateDirectories(dir, &fs).ok());
  OPTRAIL_CHECK(
      WriteFileAtomically(JoinPath(dir, absl::StrCat(kId, ".pb")), bytes, &fs)
          .ok());
  const History buried = *History::Open("buried", &fs);
  const auto loaded = buried.LoadTombstones();
  OPTRAIL_CHECK(loaded.ok());
  OPTRAIL_CHECK(loaded->bad_files.size() <= 1);
  OPTRAIL_CHECK(loaded->bad_files.empty() || loaded->by_run.empty());
  for (const auto& [id, kind] : loaded->by_run) OPTRAIL_CHECK(IsRecordId(id));
  OPTRAIL_CHECK(buried.Verify()->tombstone_files +
                    static_cast<int64_t>(loaded->bad_files.size()) ==
                1);

  const History whole = *History::Open("whole", &fs);
  proto::Run run;
  run.set_run_id(kRunId);
  OPTRAIL_CHECK(whole.AppendRun(run).ok());
  const auto merged = buried.MergeFrom(whole);
  OPTRAIL_CHECK(merged.ok() && merged->bad_files.empty());
  const auto tombstone = loaded->by_run.find(kRunId);
  const bool removed =
      tombstone != loaded->by_run.end() && tombstone->second == proto::REMOVED;
  OPTRAIL_CHECK(buried.ReadRun(kRunId).ok() == !removed);
  OPTRAIL_CHECK(merged->buried == (removed ? 1 : 0));

  // The other way they are held back where they would take something away, come
  // along once that is accepted, and what is here stays.
  const auto asked = whole.MergeFrom(buried);
  OPTRAIL_CHECK(asked.ok());
  OPTRAIL_CHECK(asked->held_back.size() ==
                (tombstone == loaded->by_run.end() ? 0 : 1));
  const auto back = whole.MergeFrom(buried, {/*accept_removals=*/true});
  OPTRAIL_CHECK(back.ok());
  OPTRAIL_CHECK(back->bad_files.size() == loaded->bad_files.size());
  OPTRAIL_CHECK(whole.ReadRun(kRunId).ok());
  OPTRAIL_CHECK(whole.LoadTombstones()->by_run == loaded->by_run);
}

}  // namespace
}  // namespace optrail::tracker

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // Invalid UTF-8 is an error that it logs each time.
  google::protobuf::SetLogHandler(nullptr);
  const absl::string_view input(reinterpret_cast<const char*>(data), size);
  optrail::tracker::ReadAsFile(input);
  optrail::tracker::ReadAsFile(
      optrail::tracker::WithChecksum(std::string(input)));
  optrail::tracker::ReadAsFile(optrail::tracker::WithId(input));
  return 0;
}
