#ifndef OPTRAIL_BASE_RANDOM_H_
#define OPTRAIL_BASE_RANDOM_H_

// Rng is a small, seeded random number generator whose whole output is fixed by
// its seed, on every machine and in every release: a tuning session that is
// killed and resumed must draw what it would have drawn. (The distributions of
// <random> and Abseil do not promise that.)
//
//   Rng rng(seed);
//   const int64_t i = rng.UniformInt(n);   // in [0, n)
//
// It is xoshiro256** (Blackman and Vigna, "Scrambled linear pseudorandom number
// generators", 2021), seeded by SplitMix64. It is not for cryptography and not
// thread-safe.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace optrail {

class Rng {
 public:
  using result_type = uint64_t;

  explicit Rng(uint64_t seed) {
    for (uint64_t& word : state_) word = SplitMix64(seed);
  }

  // The URBG interface, so that std::shuffle and friends work where their
  // result need not be the same everywhere.
  static constexpr uint64_t min() { return 0; }
  static constexpr uint64_t max() { return ~uint64_t{0}; }

  uint64_t operator()() {
    const uint64_t result = Rotate(state_[1] * 5, 7) * 9;
    const uint64_t t = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= t;
    state_[3] = Rotate(state_[3], 45);
    return result;
  }

  // Uniform in [0, n), without bias; n must be positive. (Lemire, "Fast random
  // integer generation in an interval", 2019.)
  int64_t UniformInt(int64_t n) {
    const uint64_t range = static_cast<uint64_t>(n);
    unsigned __int128 product =
        static_cast<unsigned __int128>((*this)()) * range;
    uint64_t low = static_cast<uint64_t>(product);
    if (low < range) {
      const uint64_t threshold = (0 - range) % range;
      while (low < threshold) {
        product = static_cast<unsigned __int128>((*this)()) * range;
        low = static_cast<uint64_t>(product);
      }
    }
    return static_cast<int64_t>(product >> 64);
  }

  // Uniform in [0, 1), in steps of 2^-53.
  double UniformReal() {
    return static_cast<double>((*this)() >> 11) * 0x1.0p-53;
  }

  // Standard normal (Marsaglia's polar method).
  double Gaussian() {
    double u, v, s;
    do {
      u = 2 * UniformReal() - 1;
      v = 2 * UniformReal() - 1;
      s = u * u + v * v;
    } while (s >= 1 || s == 0);
    return u * std::sqrt(-2 * std::log(s) / s);
  }

  // Fisher-Yates; the same order for the same seed everywhere.
  template <typename T>
  void Shuffle(std::vector<T>& items) {
    for (size_t i = items.size(); i > 1; --i) {
      std::swap(items[i - 1], items[UniformInt(static_cast<int64_t>(i))]);
    }
  }

 private:
  static uint64_t Rotate(uint64_t x, int k) {
    return (x << k) | (x >> (64 - k));
  }

  static uint64_t SplitMix64(uint64_t& seed) {
    uint64_t z = (seed += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

  uint64_t state_[4];
};

}  // namespace optrail

#endif  // OPTRAIL_BASE_RANDOM_H_
