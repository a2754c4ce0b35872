#ifndef OPTRAIL_TRACKER_CHECKOUT_SHELL_TEMPLATE_H_
#define OPTRAIL_TRACKER_CHECKOUT_SHELL_TEMPLATE_H_

// FillShellTemplate puts values into a command line for /bin/sh, so that each
// arrives as it is, whatever quotes its placeholder stands in.
//
//   FillShellTemplate("./bench --filter={filter}", {{"{filter}", "^(a|b)$"}});
//   FillShellTemplate("./bench '--filter={filter}'", {{"{filter}",
//   "^(a|b)$"}});

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace optrail::tracker {

// Placeholders are looked for in the order in which they are given.
std::string FillShellTemplate(
    absl::string_view command,
    const std::vector<std::pair<std::string, std::string>>& values);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_CHECKOUT_SHELL_TEMPLATE_H_
