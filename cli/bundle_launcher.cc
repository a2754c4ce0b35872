// Starts the command line of a bundle (bundle.sh) with the libraries that came
// with it, the C library and its loader included: the machine needs none of its
// own. Linked statically.

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <string>
#include <vector>

int main(int argc, char** argv) {
  char self[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
  // Where /proc is not mounted, the path that was typed has to do.
  std::string path =
      length > 0 ? std::string(self, static_cast<size_t>(length)) : argv[0];
  const size_t slash = path.rfind('/');
  const std::string folder =
      slash == std::string::npos ? "." : path.substr(0, slash);
  // What else the machine has, such as a driver's libraries, is found after.
  std::string libraries = folder + "/lib";
  if (const char* own = getenv("LD_LIBRARY_PATH"); own != nullptr && *own) {
    libraries += std::string(":") + own;
  }
  // Processes that measure are this program again
  // (base/process/running_binary.h).
  setenv("OPTRAIL_BUNDLE", folder.c_str(), 1);
  std::vector<std::string> words = {folder + "/lib/ld-linux-x86-64.so.2",
                                    "--library-path",
                                    libraries,
                                    "--argv0",
                                    path,
                                    folder + "/lib/optrail"};
  words.insert(words.end(), argv + 1, argv + argc);
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(&word[0]);
  arguments.push_back(nullptr);
  execv(arguments[0], arguments.data());
  perror(arguments[0]);
  return 2;
}
