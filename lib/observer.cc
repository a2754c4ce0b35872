#include "lib/observer.h"

#include <pthread.h>

#include <cstdlib>
#include <mutex>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "lib/optrail.h"

namespace optrail::lib {

std::atomic<const Observer*> Observer::instance_{nullptr};

absl::Status Observer::Start(const std::string& folder, uint32_t flags) {
  if ((flags & ~uint32_t{OPTRAIL_OBSERVE_TIME}) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("flags is ", flags, ", of which this library knows ",
                     OPTRAIL_OBSERVE_TIME));
  }
  if (folder.empty()) {
    return absl::InvalidArgumentError("folder is empty, expected its path");
  }
  static auto& mutex = *new std::mutex();
  const std::lock_guard<std::mutex> lock(mutex);
  if (const Observer* const observer = Get()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "calls are counted already, in ", observer->file().path()));
  }
  OPTRAIL_ASSIGN_OR_RETURN(auto file, tuning::ObservedFile::Create(folder));
  // It counts until the process ends.
  instance_.store(
      new Observer(std::move(file), (flags & OPTRAIL_OBSERVE_TIME) != 0),
      std::memory_order_release);
  pthread_atfork([] { Get()->file().Lock(); }, [] { Get()->file().Unlock(); },
                 [] { Get()->file().Unlock(); });
  return absl::OkStatus();
}

absl::Status Observer::Counts() {
  if (Get() != nullptr) return absl::OkStatus();
  const absl::Status asked = StartFromEnvironment();
  if (Get() != nullptr) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "calls are not counted: ",
      asked.ok() ? "nobody asked for it; next: set OPTRAIL_OBSERVE=FOLDER"
                 : asked.message()));
}

const absl::Status& Observer::StartFromEnvironment() {
  static const absl::Status& started = *new absl::Status([] {
    const char* const folder = std::getenv("OPTRAIL_OBSERVE");
    if (folder == nullptr || *folder == '\0' || Get() != nullptr) {
      return absl::OkStatus();
    }
    const char* const time = std::getenv("OPTRAIL_OBSERVE_TIME");
    const absl::string_view wanted = time == nullptr ? "" : time;
    if (!wanted.empty() && wanted != "0" && wanted != "1") {
      return absl::InvalidArgumentError(
          absl::StrCat("OPTRAIL_OBSERVE_TIME=", wanted, ", expected 0 or 1"));
    }
    const absl::Status status =
        Start(folder, wanted == "1" ? OPTRAIL_OBSERVE_TIME : 0);
    return status.ok() ? status
                       : absl::Status(status.code(),
                                      absl::StrCat("OPTRAIL_OBSERVE=", folder,
                                                   ": ", status.message()));
  }());
  return started;
}

}  // namespace optrail::lib
