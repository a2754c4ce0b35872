#include "ops/device/cuda/nvrtc.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "ops/device/cuda/library.h"
#include "re2/re2.h"

namespace optrail::ops::cuda {

absl::StatusOr<Nvrtc> Nvrtc::Load() {
  const absl::StatusOr<ToolkitLibrary> library =
      ToolkitLibrary::Open({"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"});
  if (!library.ok()) {
    return absl::Status(
        library.status().code(),
        absl::StrCat(library.status().message(),
                     "; next: install NVIDIA's package cuda-nvrtc-13-0 (or "
                     "12-8), or pip's nvidia-cuda-nvrtc with its folder in "
                     "LD_LIBRARY_PATH"));
  }
  Nvrtc nvrtc;
  int (*version)(int* major, int* minor) = nullptr;
  for (const absl::Status& found :
       {library->Get("nvrtcVersion", version),
        library->Get("nvrtcGetErrorString", nvrtc.GetErrorString),
        library->Get("nvrtcCreateProgram", nvrtc.CreateProgram),
        library->Get("nvrtcDestroyProgram", nvrtc.DestroyProgram),
        library->Get("nvrtcCompileProgram", nvrtc.CompileProgram),
        library->Get("nvrtcGetProgramLogSize", nvrtc.GetProgramLogSize),
        library->Get("nvrtcGetProgramLog", nvrtc.GetProgramLog),
        library->Get("nvrtcGetCUBINSize", nvrtc.GetCubinSize),
        library->Get("nvrtcGetCUBIN", nvrtc.GetCubin),
        library->Get("nvrtcGetPTXSize", nvrtc.GetPtxSize),
        library->Get("nvrtcGetPTX", nvrtc.GetPtx)}) {
    OPTRAIL_RETURN_IF_ERROR(found);
  }
  version(&nvrtc.major_, &nvrtc.minor_);
  return nvrtc;
}

absl::StatusOr<const Nvrtc*> Nvrtc::Get() {
  static const auto* const nvrtc = new absl::StatusOr<Nvrtc>(Load());
  if (!nvrtc->ok()) return nvrtc->status();
  return &**nvrtc;
}

std::string Nvrtc::version() const {
  return absl::StrCat("nvrtc ", major_, ".", minor_);
}

absl::StatusOr<Cubin> Nvrtc::Compile(const std::string& source,
                                     const std::string& name,
                                     const std::vector<std::string>& options,
                                     const Headers& headers) const {
  std::vector<const char*> arguments;
  for (const std::string& option : options) arguments.push_back(option.c_str());
  arguments.push_back("-Xptxas=-v");
  std::vector<const char*> texts, names;
  for (const auto& [header, contents] : headers) {
    names.push_back(header.c_str());
    texts.push_back(contents.c_str());
  }
  void* program = nullptr;
  int result = CreateProgram(&program, source.c_str(), name.c_str(),
                             static_cast<int>(headers.size()), texts.data(),
                             names.data());
  if (result != 0) {
    return absl::InternalError(
        absl::StrCat(name, ": nvrtcCreateProgram: ", GetErrorString(result)));
  }
  result = CompileProgram(program, static_cast<int>(arguments.size()),
                          arguments.data());
  Cubin cubin;
  size_t bytes = 0;
  if (GetProgramLogSize(program, &bytes) == 0 && bytes > 1) {
    cubin.log.resize(bytes);
    GetProgramLog(program, &cubin.log[0]);
    cubin.log.resize(bytes - 1);  // without the final NUL
  }
  if (result == 0) {
    result = GetCubinSize(program, &bytes);
    if (result == 0) {
      cubin.bytes.resize(bytes);
      result = GetCubin(program, &cubin.bytes[0]);
    }
    if (result == 0 && GetPtxSize(program, &bytes) == 0 && bytes > 1) {
      cubin.ptx.resize(bytes);
      GetPtx(program, &cubin.ptx[0]);
      cubin.ptx.resize(bytes - 1);  // without the final NUL
    }
  }
  DestroyProgram(&program);
  if (result != 0) {
    return absl::InternalError(absl::StrCat(name, ": ", GetErrorString(result),
                                            cubin.log.empty() ? "" : "\n",
                                            cubin.log));
  }
  cubin.facts = FactsOfPtxasLog(cubin.log);
  return cubin;
}

std::map<std::string, int64_t> FactsOfPtxasLog(const std::string& log) {
  std::map<std::string, int64_t> facts;
  const auto find = [&](const char* fact, const char* pattern) {
    int64_t value = 0;
    if (RE2::PartialMatch(log, pattern, &value)) facts[fact] = value;
  };
  find("registers", R"(Used (\d+) registers)");
  find("stack_bytes", R"((\d+) bytes stack frame)");
  find("spill_bytes", R"((\d+) bytes spill stores)");
  find("shared_bytes", R"((\d+) bytes smem)");
  return facts;
}

}  // namespace optrail::ops::cuda
