// Writes runtime_object.cc, see runtime_object.h. Argument: where to.

#include <fstream>
#include <iterator>
#include <string>

#include "Halide.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::string out = argv[1], object = out + ".o";
  // No features: the runtime finds out by itself what it may use.
  const Halide::Target host = Halide::get_host_target();
  Halide::compile_standalone_runtime(
      object, Halide::Target(host.os, host.arch, host.bits));
  std::ifstream in(object, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(in)),
                          std::istreambuf_iterator<char>());
  std::ofstream text(out);
  text << "#include \"ops/halide/runtime_object.h\"\n"
          "namespace optrail::halide {\n"
          "const size_t kRuntimeObjectSize = "
       << bytes.size() << ";\nconst char kRuntimeObject[] =";
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (i % 64 == 0) text << (i == 0 ? "\n\"" : "\"\n\"");
    const auto byte = static_cast<unsigned char>(bytes[i]);
    const char octal[] = {'\\', static_cast<char>('0' + (byte >> 6)),
                          static_cast<char>('0' + (byte >> 3 & 7)),
                          static_cast<char>('0' + (byte & 7)), '\0'};
    text << octal;
  }
  text << "\";\n}  // namespace optrail::halide\n";
  text.close();
  return bytes.empty() || !text ? 1 : 0;
}
