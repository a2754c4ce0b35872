#ifndef OPTRAIL_CLI_OPTRAIL_H_
#define OPTRAIL_CLI_OPTRAIL_H_

// The command line: one function for everything that Optrail does, which main()
// returns, and which tests fork to ask many questions of one process.
//
// It returns the exit code of the command (base/exit_code.h). It is called once
// in a process: commands set flags.

namespace optrail::cli {

int RunOptrail(int argc, char** argv);

}  // namespace optrail::cli

#endif  // OPTRAIL_CLI_OPTRAIL_H_
