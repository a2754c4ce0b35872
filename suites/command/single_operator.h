#ifndef OPTRAIL_SUITES_COMMAND_SINGLE_OPERATOR_H_
#define OPTRAIL_SUITES_COMMAND_SINGLE_OPERATOR_H_

// The binaries that the operator macro generates: one command for the operators
// that are linked in, usually one.

#include <string>

#include "absl/functional/function_ref.h"
#include "suites/command/command_line.h"

namespace optrail::suites {

// Runs `make_command(regex of the linked operators' names)`.
int RunForLinkedOperator(
    absl::FunctionRef<Command(const std::string& op)> make_command,
    const std::string& command_name, int argc, char** argv);

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_COMMAND_SINGLE_OPERATOR_H_
