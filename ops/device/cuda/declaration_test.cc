// The names that a space of a CUDA kernel may read.

#include "base/file/file.h"
#include "base/text/textproto.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tuning/proto/canonical.h"
#include "tuning/space/space.h"

namespace optrail::ops {
namespace {

constexpr char kPath[] = "ops/device/cuda/cuda.hardware.textproto";

proto::Hardware Declared() {
  const auto file = ParseTextProto<proto::Hardware>(*ReadFile(kPath), kPath);
  EXPECT_TRUE(file.ok()) << file.status();
  return file->message;
}

absl::Status Bind(const std::string& constraint) {
  const auto space = tuning::Space::Parse(
      "knob { name: 'stages' ints: [1, 2, 3, 4] }\n"
      "constraint { expr: '" +
          constraint +
          "' }\n"
          "default { set { knob: 'stages' int: 1 } }",
      "s");
  EXPECT_TRUE(space.ok()) << space.status();
  return space->Bind(*tuning::ParseShape("n=1/f32"), Declared()).status();
}

TEST(CudaDeclarationTest, SpacesReadWhatItNames) {
  const proto::Hardware declared = Declared();
  EXPECT_EQ(declared.device_kind(), proto::CUDA);
  for (const proto::HardwareAttribute& attribute : declared.attributes()) {
    EXPECT_TRUE(Bind("hw." + attribute.name() + " > 0").ok())
        << attribute.name();
  }
  EXPECT_TRUE(Bind("stages * 65536 <= hw.shared_bytes_per_block").ok());
}

TEST(CudaDeclarationTest, ACpusNamesAreNotAmongThem) {
  EXPECT_THAT(std::string(Bind("hw.simd_bits > 0").message()),
              testing::HasSubstr("s:2:21: unknown attribute \"hw.simd_bits\""));
}

}  // namespace
}  // namespace optrail::ops
