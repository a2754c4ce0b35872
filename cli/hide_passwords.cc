#include "cli/hide_passwords.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "tracker/history/store_url.h"

namespace optrail::cli {

std::vector<char*> HidePasswords(int argc, char** argv) {
  std::vector<char*> given;
  for (int i = 0; i < argc; ++i) {
    given.push_back(argv[i]);
    const std::string text = argv[i];
    const std::string shown = tracker::ShownUrl(text);
    if (shown == text) continue;
    given.back() = (new std::string(text))->data();
    std::memset(argv[i], 0, text.size());
    // The dots may be longer than the password that they stand for.
    std::memcpy(argv[i], shown.data(), std::min(shown.size(), text.size()));
  }
  given.push_back(nullptr);
  return given;
}

}  // namespace optrail::cli
