// What a durable record and a durable file cost on the disk of TEST_TMPDIR or
// TMPDIR, else of the current folder.

#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/file/file.h"
#include "base/file/journal.h"
#include "base/hash/crc32c.h"
#include "benchmark/benchmark.h"

namespace optrail {
namespace {

std::string ScratchPath(const std::string& name) {
  const char* dir = std::getenv("TEST_TMPDIR");
  if (dir == nullptr) dir = std::getenv("TMPDIR");
  return JoinPath(dir == nullptr ? "." : dir,
                  absl::StrCat(name, ".", getpid()));
}

void BM_JournalAppendSync(benchmark::State& state) {
  const std::string path = ScratchPath("journal_benchmark");
  std::unique_ptr<Journal> journal = Journal::Open(path).value();
  const std::string record(512, 'x');
  for (auto unused : state) {
    for (int64_t i = 0; i < state.range(0); ++i) {
      if (!journal->Append(record).ok()) state.SkipWithError("append");
    }
    if (!journal->Sync().ok()) state.SkipWithError("sync");
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
  journal.reset();
  if (!RemoveFile(path).ok()) state.SkipWithError("remove");
}
BENCHMARK(BM_JournalAppendSync)->ArgName("records")->Arg(1)->Arg(64);

void BM_JournalRead(benchmark::State& state) {
  const std::string path = ScratchPath("journal_benchmark");
  std::unique_ptr<Journal> journal = Journal::Open(path).value();
  for (int64_t i = 0; i < state.range(0); ++i) {
    if (!journal->Append(std::string(512, 'x')).ok()) return;
  }
  if (!journal->Sync().ok()) state.SkipWithError("sync");
  for (auto unused : state) {
    benchmark::DoNotOptimize(ReadJournal(path).value());
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
  state.SetBytesProcessed(state.iterations() * journal->size_bytes());
  journal.reset();
  if (!RemoveFile(path).ok()) state.SkipWithError("remove");
}
BENCHMARK(BM_JournalRead)->ArgName("records")->Arg(10000);

void BM_WriteFileAtomically(benchmark::State& state) {
  const std::string path = ScratchPath("file_benchmark");
  const std::string contents(static_cast<size_t>(state.range(0)), 'x');
  for (auto unused : state) {
    if (!WriteFileAtomically(path, contents).ok()) state.SkipWithError("write");
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
  if (!RemoveFile(path).ok()) state.SkipWithError("remove");
}
BENCHMARK(BM_WriteFileAtomically)->ArgName("bytes")->Arg(1 << 10)->Arg(1 << 20);

template <uint32_t (*kExtend)(uint32_t, absl::string_view)>
void BM_Crc32c(benchmark::State& state) {
  const std::string data(static_cast<size_t>(state.range(0)), 'x');
  for (auto unused : state) benchmark::DoNotOptimize(kExtend(0, data));
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK_TEMPLATE(BM_Crc32c, ExtendCrc32c)->Arg(512)->Arg(1 << 16);
BENCHMARK_TEMPLATE(BM_Crc32c, ExtendCrc32cPortable)->Arg(512)->Arg(1 << 16);

}  // namespace
}  // namespace optrail
