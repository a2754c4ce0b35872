#include <vector>

#include "cli/hide_passwords.h"
#include "cli/optrail.h"

int main(int argc, char** argv) {
  std::vector<char*> arguments = optrail::cli::HidePasswords(argc, argv);
  return optrail::cli::RunOptrail(argc, arguments.data());
}
