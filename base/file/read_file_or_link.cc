#include "base/file/read_file_or_link.h"

#include <filesystem>
#include <system_error>

#include "base/file/file.h"

namespace optrail {

absl::StatusOr<std::string> ReadFileOrLink(const std::string& path) {
  std::error_code error;
  const std::string place = std::filesystem::canonical(path, error).string();
  return ReadRegularFile(error ? path : place);
}

}  // namespace optrail
