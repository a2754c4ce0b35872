// NVRTC without a compiler, for tests of what comes after it: "compiles" any
// source to a cubin that says what it was made of. The driver beside it
// (fake_driver.cc) launches functions by their names alone. A source that
// defines FAKE_NVRTC_FAILS does not compile.

#include <cstring>
#include <string>

namespace {

struct Program {
  std::string source, name, cubin, log;
};

constexpr int kCompilation = 6;  // NVRTC_ERROR_COMPILATION

int Copy(const std::string& text, char* to) {
  memcpy(to, text.c_str(), text.size() + 1);
  return 0;
}

}  // namespace

#define FAKE(name, ...)             \
  extern "C" int name(__VA_ARGS__); \
  extern "C" int name(__VA_ARGS__)

extern "C" const char* nvrtcGetErrorString(int result);
extern "C" const char* nvrtcGetErrorString(int result) {
  return result == 0 ? "NVRTC_SUCCESS" : "NVRTC_ERROR_COMPILATION";
}
FAKE(nvrtcVersion, int* major, int* minor) {
  *major = 13;
  *minor = 0;
  return 0;
}
FAKE(nvrtcCreateProgram, void** program, const char* source, const char* name,
     int, const char* const*, const char* const*) {
  *program = new Program{source, name, "", ""};
  return 0;
}
FAKE(nvrtcDestroyProgram, void** program) {
  delete static_cast<Program*>(*program);
  return 0;
}
FAKE(nvrtcCompileProgram, void* program, int count,
     const char* const* options) {
  auto* const made = static_cast<Program*>(program);
  if (made->source.find("FAKE_NVRTC_FAILS") != std::string::npos) {
    made->log = "FAKE_NVRTC_FAILS is there";
    return kCompilation;
  }
  made->cubin = "cubin of " + made->name;
  for (int i = 0; i < count; ++i) {
    made->cubin += std::string(" ") + options[i];
  }
  made->log = "ptxas info    : Used 32 registers";
  return 0;
}
FAKE(nvrtcGetProgramLogSize, void* program, size_t* bytes) {
  *bytes = static_cast<Program*>(program)->log.size() + 1;
  return 0;
}
FAKE(nvrtcGetProgramLog, void* program, char* log) {
  return Copy(static_cast<Program*>(program)->log, log);
}
FAKE(nvrtcGetCUBINSize, void* program, size_t* bytes) {
  *bytes = static_cast<Program*>(program)->cubin.size();
  return 0;
}
FAKE(nvrtcGetCUBIN, void* program, char* cubin) {
  const std::string& made = static_cast<Program*>(program)->cubin;
  memcpy(cubin, made.data(), made.size());
  return 0;
}
FAKE(nvrtcGetPTXSize, void* program, size_t* bytes) {
  *bytes = static_cast<Program*>(program)->name.size() + 1;
  return 0;
}
FAKE(nvrtcGetPTX, void* program, char* ptx) {
  return Copy(static_cast<Program*>(program)->name, ptx);
}
