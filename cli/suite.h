#ifndef OPTRAIL_CLI_SUITE_H_
#define OPTRAIL_CLI_SUITE_H_

// `optrail suite`, also on its own: a target of the `suite` macro that names
// its operators (suites/suite.bzl) is this command with these alone.

#include "suites/command/command_line.h"

namespace optrail::cli {

suites::Command SuiteCommand();

}  // namespace optrail::cli

#endif  // OPTRAIL_CLI_SUITE_H_
