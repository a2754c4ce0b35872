#include "ops/core/input_file.h"

#include <stdlib.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "base/file/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optrail::ops {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Returns a file as numpy.save() writes it.
std::string Npy(const std::string& type, const std::string& bytes,
                const std::string& order = "False") {
  std::string header =
      absl::StrCat("{'descr': '", type, "', 'fortran_order': ", order,
                   ", 'shape': (2, 3), }");
  header.resize(117, ' ');
  header += '\n';
  std::string file("\x93NUMPY\x01\x00", 8);
  file += static_cast<char>(header.size());
  file += '\0';
  return file + header + bytes;
}

template <typename T>
std::string Bytes(std::initializer_list<T> values) {
  return std::string(reinterpret_cast<const char*>(values.begin()),
                     values.size() * sizeof(T));
}

class InputFileTest : public ::testing::Test {
 protected:
  std::string Write(const std::string& bytes) {
    EXPECT_TRUE(WriteFileAtomically(path_, bytes).ok());
    return path_;
  }
  std::string Error(const std::string& bytes) {
    const auto values = ReadInputFile(Write(bytes));
    EXPECT_FALSE(values.ok());
    EXPECT_THAT(std::string(values.status().message()), HasSubstr(path_));
    return std::string(values.status().message());
  }
  const std::string path_ = JoinPath(
      ::testing::TempDir(),
      absl::StrCat(
          ::testing::UnitTest::GetInstance()->current_test_info()->name(),
          ".npy"));
};

TEST_F(InputFileTest, ReadsFloatsAndIntegers) {
  EXPECT_THAT(*ReadInputFile(Write(Npy("<f4", Bytes<float>({1.5f, -2})))),
              ElementsAre(1.5, -2));
  EXPECT_THAT(*ReadInputFile(Write(Npy("<f8", Bytes<double>({1e300})))),
              ElementsAre(1e300));
  EXPECT_THAT(*ReadInputFile(Write(Npy("<f2", Bytes<uint16_t>({0x3c00})))),
              ElementsAre(1));
  EXPECT_THAT(*ReadInputFile(Write(Npy("<i8", Bytes<int64_t>({7, -1})))),
              ElementsAre(7, -1));
  EXPECT_THAT(*ReadInputFile(Write(Npy("|u1", "\xff"))), ElementsAre(255));
}

TEST_F(InputFileTest, SaysWhatCannotBeRead) {
  EXPECT_THAT(Error("1,2,3"), HasSubstr("not a NumPy file"));
  EXPECT_THAT(Error(""), HasSubstr("not a NumPy file"));
  EXPECT_THAT(Error(Npy("<f4", "").substr(0, 40)), HasSubstr("truncated"));
  EXPECT_THAT(Error(Npy("<f4", "")), HasSubstr("no values"));
  EXPECT_THAT(Error(Npy("<c8", "12345678")), HasSubstr("'<c8'"));
  EXPECT_THAT(Error(Npy(">f4", "1234")), HasSubstr("little-endian"));
  EXPECT_THAT(Error(Npy("<f4", "1234", "True")), HasSubstr("C order"));
}

TEST_F(InputFileTest, AMissingFileIsNamedWithThePlacesLookedAt) {
  setenv("BUILD_WORKSPACE_DIRECTORY", "/no/such/workspace", 1);
  const auto values = ReadInputFile("ops/x.npy");
  EXPECT_TRUE(absl::IsNotFound(values.status()));
  EXPECT_THAT(std::string(values.status().message()),
              HasSubstr("/no/such/workspace/ops/x.npy"));
}

TEST_F(InputFileTest, RelativePathsAreThoseOfTheWorkspace) {
  Write(Npy("<f4", Bytes<float>({3})));
  setenv("BUILD_WORKSPACE_DIRECTORY", ::testing::TempDir().c_str(), 1);
  const std::string name = path_.substr(path_.rfind('/') + 1);
  EXPECT_THAT(*ReadInputFile(name), ElementsAre(3));
}

}  // namespace
}  // namespace optrail::ops
