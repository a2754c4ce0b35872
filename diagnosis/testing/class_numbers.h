#ifndef OPTRAIL_DIAGNOSIS_TESTING_CLASS_NUMBERS_H_
#define OPTRAIL_DIAGNOSIS_TESTING_CLASS_NUMBERS_H_

// For tests of the table of classes: numbers of kernels, to which a case adds
// its own.
//
//   Numbers numbers = Computing();
//   numbers.Set("vector_use", .1, "test");
//   EXPECT_EQ(FirstCause(numbers), "scalar");

#include <string>

#include "diagnosis/classes.h"
#include "diagnosis/derived.h"

namespace optrail::diagnosis {

// The name of the first cause; "" where there is none.
inline std::string FirstCause(const Numbers& numbers) {
  const auto causes = Judge(numbers);
  return causes.empty() ? "" : causes[0].chain().rbegin()->class_name();
}

// A kernel that computes and is far from the roofline.
inline Numbers Computing() {
  Numbers numbers;
  numbers.Set("roofline_share", .2, "test");
  numbers.Set("memory_gain", .05, "test");
  numbers.Set("memory_share", .05, "test");
  numbers.Set("arithmetic_share", .2, "test");
  return numbers;
}

// A kernel that waits for memory, in one pass.
inline Numbers MemoryBound() {
  Numbers numbers;
  numbers.Set("roofline_share", .3, "test");
  numbers.Set("memory_gain", {.7, .68, .72}, "test");
  numbers.Set("memory_evidence", .7, "test");
  numbers.Set("walk_gain", {.7, .68, .72}, "test");
  numbers.Set("workspace_share", 0, "test");
  numbers.Set("level_dram", 1, "test");
  numbers.Set("working_set_kib", 65536, "test");
  return numbers;
}

// With vectors of 512 bits.
inline proto::Hardware Zen() {
  proto::Hardware hardware;
  hardware.set_simd_bits(512);
  return hardware;
}

}  // namespace optrail::diagnosis

#endif  // OPTRAIL_DIAGNOSIS_TESTING_CLASS_NUMBERS_H_
