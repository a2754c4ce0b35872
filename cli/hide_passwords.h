#ifndef OPTRAIL_CLI_HIDE_PASSWORDS_H_
#define OPTRAIL_CLI_HIDE_PASSWORDS_H_

// A process's arguments are for everybody of its machine to read, in /proc and
// by ps. HidePasswords() takes the passwords of URLs out of them, at the start
// of main(), before there are threads. Until then they can be seen: a password
// belongs into ~/.pgpass.

#include <vector>

namespace optrail::cli {

// The arguments as they were given, with a null behind the last; copies that
// stay. Those of `argv` are shortened in place.
std::vector<char*> HidePasswords(int argc, char** argv);

}  // namespace optrail::cli

#endif  // OPTRAIL_CLI_HIDE_PASSWORDS_H_
