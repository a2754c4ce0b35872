// The child of subprocess_test: behaves and misbehaves on request.

#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <ctime>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/process/subprocess.h"

namespace {

// Holds on to memory and touches it, 1 MiB at a time, at most 1 GiB.
void Allocate() {
  std::vector<std::unique_ptr<char[]>> blocks;
  for (int i = 0; i < 1024; ++i) {
    blocks.push_back(std::make_unique<char[]>(1 << 20));
    std::memset(blocks.back().get(), 1, 1 << 20);
  }
  pause();
}

// Computes for so long by the time that it has a core.
void Compute(clock_t ticks) {
  const clock_t end = clock() + ticks;
  while (clock() < end) {
  }
}

int ServeFrames() {
  optrail::DieWithParent();
  auto channel = optrail::FrameChannel::TakeStandardStreams().value();
  while (true) {
    const absl::StatusOr<std::string> request = channel->Read();
    if (!request.ok()) return absl::IsOutOfRange(request.status()) ? 0 : 9;
    if (*request == "hang") pause();
    if (*request == "spin") Compute(3600 * CLOCKS_PER_SEC);
    if (*request == "compute") Compute(CLOCKS_PER_SEC / 2);
    if (*request == "crash") std::abort();
    if (*request == "exit") return 5;
    if (*request == "allocate") Allocate();
    if (*request == "print") std::cout << "stray text" << std::endl;
    if (*request == "parent") {
      if (!channel->Write(absl::StrCat(getppid())).ok()) return 8;
      continue;
    }
    if (!channel->Write(absl::StrCat("got ", *request)).ok()) return 8;
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  if (mode == "frames") return ServeFrames();
  if (mode == "allocate") Allocate();
  if (mode == "torn_frame") return write(1, "\x10\0\0\0abc", 7) == 7 ? 0 : 1;
  if (mode == "huge_frame") return write(1, "\xff\xff\xff\xff", 4) == 4 ? 0 : 1;
  // Starts a worker, says its process id and dies without a word to it.
  if (mode == "orphan") {
    auto worker = optrail::Subprocess::Start({argv[0], "frames"}).value();
    if (!worker->WriteFrame("parent", absl::Seconds(30)).ok()) return 1;
    if (!worker->ReadFrame(absl::Seconds(30)).ok()) return 1;
    std::cout << worker->pid() << std::endl;
    raise(SIGKILL);
  }
  std::cerr << "unknown mode " << mode << "\n";
  return 2;
}
