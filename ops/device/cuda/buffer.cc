#include "ops/device/cuda/buffer.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/status_macros.h"

namespace optrail::ops::cuda {
namespace {

// On either side. A kernel that misses its bounds by a tile misses them by
// kilobytes.
constexpr size_t kGuardBytes = 16 << 10;
// NaN for every floating-point type: it shows when it is read, too.
constexpr char kGuardByte = '\xff';

// PTX, which any GPU's driver compiles: NVRTC may be missing, and a process has
// this to do only once.
//
// differs: sets *p3 where p2 bytes differ between p0 and p1, 16 at a time; the
// last few by one thread each.
//
// stray: sets *p2 where one of p1 bytes at p0 is none of a guard zone's, by one
// thread each.
//
// repeat: copies p1 bytes at p0, a multiple of 16, behind themselves, once for
// each row of blocks.
//
// project: a block has a row of p2 elements at p0, of the type p1 (0 f32, 1
// f16, 2 bf16), and adds to its 17 values at p6. A lane each has a sum of the
// elements, negative where its bit of the element's word at p3 is not set; the
// seventeenth sums squares of p4 + p5 * |element|. Its warps take turns.
constexpr char kKernels[] = R"ptx(
.version 7.0
.target sm_60
.address_size 64

.visible .entry differs(
  .param .u64 p0,
  .param .u64 p1,
  .param .u64 p2,
  .param .u64 p3
)
{
  .reg .pred   %p<5>;
  .reg .b16   %rs<4>;
  .reg .b32   %r<39>;
  .reg .b64   %rd<26>;
  ld.param.u64   %rd11, [p0];
  ld.param.u64   %rd12, [p1];
  ld.param.u64   %rd9, [p2];
  ld.param.u64   %rd10, [p3];
  cvta.to.global.u64   %rd1, %rd12;
  cvta.to.global.u64   %rd2, %rd11;
  shr.u64   %rd3, %rd9, 4;
  mov.u32   %r7, %ctaid.x;
  mov.u32   %r8, %ntid.x;
  cvt.u64.u32   %rd4, %r8;
  mul.wide.u32   %rd13, %r7, %r8;
  mov.u32   %r9, %tid.x;
  cvt.u64.u32   %rd14, %r9;
  add.s64   %rd25, %rd13, %rd14;
  and.b64    %rd15, %rd9, 15;
  setp.ge.u64   %p1, %rd25, %rd15;
  mov.u32   %r38, 0;
  @%p1 bra   L2;
  not.b64   %rd16, %rd25;
  add.s64   %rd17, %rd16, %rd9;
  add.s64   %rd18, %rd2, %rd17;
  add.s64   %rd19, %rd1, %rd17;
  ld.global.u8   %rs1, [%rd19];
  ld.global.u8   %rs2, [%rd18];
  xor.b16    %rs3, %rs1, %rs2;
  cvt.u32.u16   %r10, %rs3;
  and.b32    %r38, %r10, 255;
L2:
  setp.ge.u64   %p2, %rd25, %rd3;
  @%p2 bra   L5;
  mov.u32   %r11, %nctaid.x;
  cvt.u64.u32   %rd20, %r11;
  mul.lo.s64   %rd6, %rd20, %rd4;
L4:
  shl.b64   %rd21, %rd25, 4;
  add.s64   %rd22, %rd2, %rd21;
  ld.global.v4.u32   {%r12, %r13, %r14, %r15}, [%rd22];
  add.s64   %rd23, %rd1, %rd21;
  ld.global.v4.u32   {%r20, %r21, %r22, %r23}, [%rd23];
  xor.b32    %r28, %r20, %r12;
  xor.b32    %r29, %r21, %r13;
  xor.b32    %r30, %r22, %r14;
  xor.b32    %r31, %r23, %r15;
  or.b32    %r32, %r29, %r38;
  or.b32    %r33, %r32, %r28;
  or.b32    %r34, %r33, %r30;
  or.b32    %r38, %r34, %r31;
  add.s64   %rd25, %rd25, %rd6;
  setp.lt.u64   %p3, %rd25, %rd3;
  @%p3 bra   L4;
L5:
  setp.eq.s32   %p4, %r38, 0;
  @%p4 bra   L7;
  cvta.to.global.u64   %rd24, %rd10;
  mov.u32   %r35, 1;
  st.global.u32   [%rd24], %r35;
L7:
  ret;
}

.visible .entry stray(
  .param .u64 p0,
  .param .u64 p1,
  .param .u64 p2
)
{
  .reg .pred   %p<3>;
  .reg .b16   %rs<2>;
  .reg .b32   %r<6>;
  .reg .b64   %rd<7>;
  ld.param.u64   %rd1, [p0];
  ld.param.u64   %rd2, [p1];
  mov.u32   %r1, %ctaid.x;
  mov.u32   %r2, %ntid.x;
  mul.wide.u32   %rd3, %r1, %r2;
  mov.u32   %r3, %tid.x;
  cvt.u64.u32   %rd4, %r3;
  add.s64   %rd3, %rd3, %rd4;
  setp.ge.u64   %p1, %rd3, %rd2;
  @%p1 bra   S1;
  cvta.to.global.u64   %rd5, %rd1;
  add.s64   %rd5, %rd5, %rd3;
  ld.global.u8   %rs1, [%rd5];
  cvt.u32.u16   %r4, %rs1;
  setp.eq.u32   %p2, %r4, 255;
  @%p2 bra   S1;
  ld.param.u64   %rd6, [p2];
  cvta.to.global.u64   %rd6, %rd6;
  mov.u32   %r5, 1;
  st.global.u32   [%rd6], %r5;
S1:
  ret;
}

.visible .entry repeat(
  .param .u64 p0,
  .param .u64 p1
)
{
  .reg .pred   %p<2>;
  .reg .b32   %r<10>;
  .reg .b64   %rd<9>;
  ld.param.u64   %rd1, [p0];
  ld.param.u64   %rd2, [p1];
  mov.u32   %r1, %ctaid.x;
  mov.u32   %r2, %ntid.x;
  mul.wide.u32   %rd3, %r1, %r2;
  mov.u32   %r3, %tid.x;
  cvt.u64.u32   %rd4, %r3;
  add.s64   %rd3, %rd3, %rd4;
  shl.b64   %rd3, %rd3, 4;
  setp.ge.u64   %p1, %rd3, %rd2;
  @%p1 bra   R1;
  cvta.to.global.u64   %rd5, %rd1;
  add.s64   %rd5, %rd5, %rd3;
  mov.u32   %r4, %ctaid.y;
  add.s32   %r4, %r4, 1;
  cvt.u64.u32   %rd6, %r4;
  mul.lo.s64   %rd7, %rd6, %rd2;
  add.s64   %rd8, %rd5, %rd7;
  ld.global.v4.u32   {%r5, %r6, %r7, %r8}, [%rd5];
  st.global.v4.u32   [%rd8], {%r5, %r6, %r7, %r8};
R1:
  ret;
}

.visible .entry project(
  .param .u64 p0,
  .param .u32 p1,
  .param .u64 p2,
  .param .u64 p3,
  .param .f64 p4,
  .param .f64 p5,
  .param .u64 p6
)
{
  .reg .pred   %p<7>;
  .reg .b16   %rs<3>;
  .reg .f32   %f<2>;
  .reg .b32   %r<11>;
  .reg .f64   %fd<8>;
  .reg .b64   %rd<16>;
  ld.param.u64   %rd13, [p0];
  ld.param.u32   %r1, [p1];
  ld.param.u64   %rd2, [p2];
  ld.param.u64   %rd14, [p3];
  ld.param.f64   %fd1, [p4];
  ld.param.f64   %fd2, [p5];
  ld.param.u64   %rd15, [p6];
  cvta.to.global.u64   %rd1, %rd13;
  cvta.to.global.u64   %rd3, %rd14;
  cvta.to.global.u64   %rd4, %rd15;
  mov.u32   %r2, %tid.x;
  and.b32    %r3, %r2, 31;
  shr.u32   %r4, %r2, 5;
  cvt.u64.u32   %rd5, %r4;
  mov.u32   %r5, %ntid.x;
  shr.u32   %r5, %r5, 5;
  cvt.u64.u32   %rd6, %r5;
  mov.u32   %r6, %ctaid.x;
  cvt.u64.u32   %rd7, %r6;
  mul.lo.s64   %rd8, %rd7, %rd2;
  and.b32    %r7, %r3, 15;
  mov.u32   %r8, 1;
  shl.b32   %r8, %r8, %r7;
  setp.eq.u32   %p1, %r1, 0;
  setp.eq.u32   %p2, %r1, 2;
  setp.lt.u32   %p3, %r3, 16;
  mov.f64   %fd3, 0d0000000000000000;
  setp.ge.u64   %p4, %rd5, %rd2;
  @%p4 bra   P2;
P1:
  add.s64   %rd9, %rd8, %rd5;
  shl.b64   %rd10, %rd9, 1;
  @%p1 shl.b64   %rd10, %rd9, 2;
  add.s64   %rd10, %rd1, %rd10;
  mov.u16   %rs1, 0;
  @!%p1 ld.global.u16   %rs1, [%rd10];
  cvt.f32.f16   %f1, %rs1;
  cvt.u32.u16   %r9, %rs1;
  shl.b32   %r9, %r9, 16;
  @%p2 mov.b32   %f1, %r9;
  @%p1 ld.global.f32   %f1, [%rd10];
  cvt.f64.f32   %fd4, %f1;
  abs.f64   %fd5, %fd4;
  fma.rn.f64   %fd6, %fd5, %fd2, %fd1;
  mul.f64   %fd6, %fd6, %fd6;
  shl.b64   %rd11, %rd5, 1;
  add.s64   %rd11, %rd3, %rd11;
  ld.global.u16   %rs2, [%rd11];
  cvt.u32.u16   %r10, %rs2;
  and.b32    %r10, %r10, %r8;
  setp.eq.u32   %p5, %r10, 0;
  neg.f64   %fd7, %fd4;
  selp.f64   %fd7, %fd7, %fd4, %p5;
  selp.f64   %fd7, %fd7, %fd6, %p3;
  add.f64   %fd3, %fd3, %fd7;
  add.s64   %rd5, %rd5, %rd6;
  setp.lt.u64   %p4, %rd5, %rd2;
  @%p4 bra   P1;
P2:
  setp.gt.u32   %p6, %r3, 16;
  @%p6 bra   P3;
  mul.lo.s64   %rd12, %rd7, 17;
  cvt.u64.u32   %rd9, %r3;
  add.s64   %rd12, %rd12, %rd9;
  shl.b64   %rd12, %rd12, 3;
  add.s64   %rd12, %rd4, %rd12;
  red.global.add.f64   [%rd12], %fd3;
P3:
  ret;
}
)ptx";
constexpr unsigned kThreads = 256;
constexpr size_t kMaxBlocks = 1024;

class CudaBuffer : public Buffer {
 public:
  CudaBuffer(MemoryComparer& comparer, Address base, size_t size_bytes)
      : comparer_(comparer),
        driver_(comparer.driver()),
        base_(base),
        size_bytes_(size_bytes) {}
  ~CudaBuffer() override { driver_.MemFree(base_); }

  void* data() override { return reinterpret_cast<void*>(base_ + kGuardBytes); }
  size_t size_bytes() const override { return size_bytes_; }
  size_t page_bytes() const override { return size_t{2} << 20; }

  absl::Status CopyFromHost(const void* source) override {
    OPTRAIL_RETURN_IF_ERROR(Wait());
    OPTRAIL_RETURN_IF_ERROR(driver_.Check(
        driver_.MemcpyHtoD(Data(), source, size_bytes_), "cuMemcpyHtoD"));
    // A copy of few bytes is on its way when it returns, in a stream that the
    // device's own does not wait for: the default one.
    return driver_.Check(driver_.StreamSynchronize(nullptr),
                         "cuStreamSynchronize");
  }
  absl::Status CopyToHost(void* destination) override {
    OPTRAIL_RETURN_IF_ERROR(Wait());
    return driver_.Check(
        driver_.MemcpyDtoH(destination, base_ + kGuardBytes, size_bytes_),
        "cuMemcpyDtoH");
  }

  // In the order of what is launched; what fails shows when it is waited for.
  bool far() const override { return true; }
  absl::Status FillWith(const void* element, size_t element_bytes) override {
    const size_t count = size_bytes_ / element_bytes;
    int result = 0;
    if (element_bytes == 1) {
      unsigned char value;
      std::memcpy(&value, element, sizeof(value));
      result = driver_.MemsetD8Async(Data(), value, count, comparer_.stream());
    } else if (element_bytes == 2) {
      unsigned short value;
      std::memcpy(&value, element, sizeof(value));
      result = driver_.MemsetD16Async(Data(), value, count, comparer_.stream());
    } else if (element_bytes == 4) {
      unsigned value;
      std::memcpy(&value, element, sizeof(value));
      result = driver_.MemsetD32Async(Data(), value, count, comparer_.stream());
    } else {
      return absl::UnimplementedError(
          absl::StrCat("elements of ", element_bytes, " bytes"));
    }
    return driver_.Check(result, "cuMemsetAsync");
  }
  absl::Status CopyFrom(Buffer& other) override {
    return driver_.Check(
        driver_.MemcpyDtoDAsync(Data(), AddressOf(other), size_bytes_,
                                comparer_.stream()),
        "cuMemcpyDtoDAsync");
  }
  absl::StatusOr<bool> Equals(Buffer& other) override {
    return comparer_.Equal(Data(), AddressOf(other), size_bytes_);
  }
  absl::Status BeginCheck(Buffer* other) override {
    OPTRAIL_RETURN_IF_ERROR(comparer_.BeginGuard(base_));
    OPTRAIL_RETURN_IF_ERROR(comparer_.BeginGuard(After()));
    if (other == nullptr) return absl::OkStatus();
    return comparer_.BeginEqual(Data(), AddressOf(*other), size_bytes_);
  }
  absl::StatusOr<bool> EndCheck() override { return comparer_.AreAllEqual(); }
  absl::Status CopyPartToHost(size_t from, absl::Span<char> part) override {
    OPTRAIL_RETURN_IF_ERROR(Wait());
    return driver_.Check(
        driver_.MemcpyDtoH(part.data(), Data() + from, part.size()),
        "cuMemcpyDtoH");
  }
  absl::StatusOr<std::vector<double>> SumRows(const RowSums& sums) override {
    return comparer_.Project(Data(), sums);
  }

  // Failures show when the guards are checked.
  void ArmGuards() override {
    for (const Address at : {base_, After()}) {
      driver_.MemsetD8Async(at, static_cast<unsigned char>(kGuardByte),
                            kGuardBytes, comparer_.stream());
    }
  }
  absl::Status CheckGuards() override {
    OPTRAIL_RETURN_IF_ERROR(Wait());
    OPTRAIL_RETURN_IF_ERROR(CheckGuard(base_, "before"));
    return CheckGuard(After(), "after");
  }

 private:
  static Address AddressOf(Buffer& buffer) {
    return reinterpret_cast<Address>(buffer.data());
  }
  Address Data() const { return base_ + kGuardBytes; }
  // The host's copies do not wait for the device's own stream.
  absl::Status Wait() {
    return driver_.Check(driver_.StreamSynchronize(comparer_.stream()),
                         "cuStreamSynchronize");
  }
  Address After() const { return base_ + kGuardBytes + size_bytes_; }

  absl::Status CheckGuard(Address at, absl::string_view side) {
    std::vector<char> guard(kGuardBytes);
    OPTRAIL_RETURN_IF_ERROR(driver_.Check(
        driver_.MemcpyDtoH(guard.data(), at, guard.size()), "cuMemcpyDtoH"));
    for (size_t i = 0; i < guard.size(); ++i) {
      if (guard[i] == kGuardByte) continue;
      const size_t distance = side == "before" ? kGuardBytes - i : i + 1;
      return absl::DataLossError(absl::StrCat("memory was overwritten ",
                                              distance, " bytes ", side,
                                              " the operand"));
    }
    return absl::OkStatus();
  }

  MemoryComparer& comparer_;
  const Driver& driver_;
  const Address base_;
  const size_t size_bytes_;
};

}  // namespace

MemoryComparer::~MemoryComparer() {
  if (module_ != nullptr) driver_.ModuleUnload(module_);
  if (flag_ != 0) driver_.MemFree(flag_);
  if (work_ != 0) driver_.MemFree(work_);
}

absl::Status MemoryComparer::Init() {
  if (differs_ != nullptr) return absl::OkStatus();
  if (flag_ == 0) {
    OPTRAIL_RETURN_IF_ERROR(driver_.Check(
        driver_.MemAlloc(&flag_, sizeof(unsigned)), "cuMemAlloc"));
  }
  OPTRAIL_RETURN_IF_ERROR(driver_.Check(
      driver_.ModuleLoadData(&module_, kKernels), "cuModuleLoadData"));
  OPTRAIL_RETURN_IF_ERROR(
      driver_.Check(driver_.ModuleGetFunction(&project_, module_, "project"),
                    "cuModuleGetFunction project"));
  OPTRAIL_RETURN_IF_ERROR(
      driver_.Check(driver_.ModuleGetFunction(&stray_, module_, "stray"),
                    "cuModuleGetFunction stray"));
  OPTRAIL_RETURN_IF_ERROR(
      driver_.Check(driver_.ModuleGetFunction(&repeat_, module_, "repeat"),
                    "cuModuleGetFunction repeat"));
  return driver_.Check(driver_.ModuleGetFunction(&differs_, module_, "differs"),
                       "cuModuleGetFunction differs");
}

absl::Status MemoryComparer::Launch(Address a, Address b, size_t size_bytes) {
  OPTRAIL_RETURN_IF_ERROR(Init());
  unsigned long long bytes = size_bytes;
  void* parameters[] = {&a, &b, &bytes, &flag_};
  const size_t blocks =
      std::clamp<size_t>(size_bytes / 16 / kThreads, 1, kMaxBlocks);
  return driver_.Check(
      driver_.LaunchKernel(differs_, static_cast<unsigned>(blocks), 1, 1,
                           kThreads, 1, 1, 0, stream_, parameters, nullptr),
      "cuLaunchKernel differs");
}

absl::Status MemoryComparer::BeginComparing() {
  OPTRAIL_RETURN_IF_ERROR(Init());
  if (comparing_) return absl::OkStatus();
  comparing_ = true;
  return driver_.Check(
      driver_.MemsetD8Async(flag_, 0, sizeof(unsigned), stream_),
      "cuMemsetD8Async");
}

absl::Status MemoryComparer::BeginEqual(Address a, Address b,
                                        size_t size_bytes) {
  OPTRAIL_RETURN_IF_ERROR(BeginComparing());
  return Launch(a, b, size_bytes);
}

absl::Status MemoryComparer::BeginGuard(Address guard) {
  OPTRAIL_RETURN_IF_ERROR(BeginComparing());
  unsigned long long bytes = kGuardBytes;
  void* parameters[] = {&guard, &bytes, &flag_};
  return driver_.Check(
      driver_.LaunchKernel(stray_, kGuardBytes / kThreads, 1, 1, kThreads, 1, 1,
                           0, stream_, parameters, nullptr),
      "cuLaunchKernel stray");
}

absl::StatusOr<bool> MemoryComparer::Equal(Address a, Address b,
                                           size_t size_bytes) {
  comparing_ = false;
  OPTRAIL_RETURN_IF_ERROR(BeginEqual(a, b, size_bytes));
  return AreAllEqual();
}

absl::Status MemoryComparer::Wait() {
  const int64_t start_ns = Clock::Real()->NowNs();
  const absl::Status waited =
      driver_.Check(driver_.StreamSynchronize(stream_), "cuStreamSynchronize");
  busy_ns_ += Clock::Real()->NowNs() - start_ns;
  return waited;
}

absl::StatusOr<bool> MemoryComparer::AreAllEqual() {
  comparing_ = false;
  OPTRAIL_RETURN_IF_ERROR(Wait());
  unsigned differs = 0;
  OPTRAIL_RETURN_IF_ERROR(driver_.Check(
      driver_.MemcpyDtoH(&differs, flag_, sizeof(differs)), "cuMemcpyDtoH"));
  return differs == 0;
}

absl::StatusOr<std::vector<double>> MemoryComparer::Project(
    Address values, const RowSums& sums) {
  OPTRAIL_RETURN_IF_ERROR(Init());
  unsigned type = sums.data_type == proto::F32   ? 0
                  : sums.data_type == proto::F16 ? 1
                                                 : 2;
  const size_t signs_bytes = sums.signs.size() * sizeof(uint16_t);
  std::vector<double> result(sums.rows * kRowSums);
  const size_t result_bytes = result.size() * sizeof(double);
  const size_t result_at = (signs_bytes + 255) / 256 * 256;
  if (work_bytes_ < result_at + result_bytes) {
    if (work_ != 0) driver_.MemFree(std::exchange(work_, 0));
    work_bytes_ = 0;
    OPTRAIL_RETURN_IF_ERROR(driver_.Check(
        driver_.MemAlloc(&work_, result_at + result_bytes), "cuMemAlloc"));
    work_bytes_ = result_at + result_bytes;
  }
  Address signs = work_, to = work_ + result_at;
  // Nothing that was launched uses them, and the copy is over when it returns
  // or is waited for in the default stream.
  OPTRAIL_RETURN_IF_ERROR(
      driver_.Check(driver_.MemcpyHtoD(signs, sums.signs.data(), signs_bytes),
                    "cuMemcpyHtoD"));
  OPTRAIL_RETURN_IF_ERROR(
      driver_.Check(driver_.StreamSynchronize(nullptr), "cuStreamSynchronize"));
  OPTRAIL_RETURN_IF_ERROR(driver_.Check(
      driver_.MemsetD8Async(to, 0, result_bytes, stream_), "cuMemsetD8Async"));
  unsigned long long columns = sums.signs.size();
  double absolute = sums.absolute, relative = sums.relative;
  void* parameters[] = {&values,   &type,     &columns, &signs,
                        &absolute, &relative, &to};
  OPTRAIL_RETURN_IF_ERROR(driver_.Check(
      driver_.LaunchKernel(project_, static_cast<unsigned>(sums.rows), 1, 1,
                           kThreads, 1, 1, 0, stream_, parameters, nullptr),
      "cuLaunchKernel project"));
  OPTRAIL_RETURN_IF_ERROR(Wait());
  OPTRAIL_RETURN_IF_ERROR(driver_.Check(
      driver_.MemcpyDtoH(result.data(), to, result_bytes), "cuMemcpyDtoH"));
  return result;
}

absl::Status MemoryComparer::Repeat(Address first, size_t size_bytes,
                                    int64_t times) {
  OPTRAIL_RETURN_IF_ERROR(Init());
  if (times < 2) return absl::OkStatus();
  unsigned long long bytes = size_bytes;
  void* parameters[] = {&first, &bytes};
  const size_t blocks = (size_bytes / 16 + kThreads - 1) / kThreads;
  return driver_.Check(
      driver_.LaunchKernel(repeat_, static_cast<unsigned>(blocks),
                           static_cast<unsigned>(times - 1), 1, kThreads, 1, 1,
                           0, stream_, parameters, nullptr),
      "cuLaunchKernel repeat");
}

absl::Status MemoryComparer::Read(Address from, size_t size_bytes) {
  // Its one half is compared with the other, and nobody asks for the answer.
  const size_t half = size_bytes / 32 * 16;
  return Launch(from, from + half, half);
}

absl::StatusOr<std::unique_ptr<Buffer>> AllocateBuffer(MemoryComparer& comparer,
                                                       size_t size_bytes) {
  const Driver& driver = comparer.driver();
  Address base = 0;
  OPTRAIL_RETURN_IF_ERROR(driver.Check(
      driver.MemAlloc(&base, size_bytes + 2 * kGuardBytes),
      absl::StrCat("cuMemAlloc of ", size_bytes + 2 * kGuardBytes, " bytes")));
  auto buffer = std::make_unique<CudaBuffer>(comparer, base, size_bytes);
  buffer->ArmGuards();
  return buffer;
}

}  // namespace optrail::ops::cuda
