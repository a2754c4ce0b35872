#include "spaces.h"

#include <cstdio>
#include <cstdlib>

namespace optrail::tuning::recordings {
namespace {

constexpr int kMultiprocessors = 132;  // H200

int CeilDiv(int a, int b) { return (a + b - 1) / b; }

// A restriction of a knob that does nothing: only its first value is kept.
bool IdleKnobIs(bool used, int value, int first) {
  return used || value == first;
}

Space GemmF32() {
  Space space;
  space.name = "gemm_f32";
  space.knobs = {{"tile_m", {32, 64, 128}},  {"tile_n", {32, 64, 128}},
                 {"tile_k", {16, 32}},       {"threads_m", {8, 16}},
                 {"threads_n", {8, 16, 32}}, {"load_m", {8, 16, 32}},
                 {"load_n", {8, 16, 32}},    {"vec_m", {1, 4}},
                 {"vec_n", {1, 2, 4}},       {"shared_a", {0, 1}},
                 {"shared_b", {0, 1}},       {"unroll_k", {1, 8}}};
  space.sizes = {{"1024x1024x1024", {1024, 1024, 1024}},
                 {"2048x2048x512", {2048, 2048, 512}},
                 {"512x512x4096", {512, 512, 4096}}};
  space.valid = [](const NamedConfig& c) {
    const int threads = c["threads_m"] * c["threads_n"];
    const int rows = c["tile_m"] / c["threads_m"];
    const int cols = c["tile_n"] / c["threads_n"];
    if (threads > 256) return false;
    if (rows < c["vec_m"] || cols < c["vec_n"]) return false;
    if (rows * cols < 8 || rows * cols > 128) return false;
    const bool a = c["shared_a"] != 0;
    const bool b = c["shared_b"] != 0;
    if (!IdleKnobIs(a, c["load_m"], 8)) return false;
    if (!IdleKnobIs(b, c["load_n"], 8)) return false;
    if (a && (c["tile_m"] % (c["load_m"] * c["vec_m"]) != 0 ||
              threads % c["load_m"] != 0 ||
              c["tile_k"] % (threads / c["load_m"]) != 0)) {
      return false;
    }
    if (b && (c["tile_n"] % (c["load_n"] * c["vec_n"]) != 0 ||
              threads % c["load_n"] != 0 ||
              c["tile_k"] % (threads / c["load_n"]) != 0)) {
      return false;
    }
    return true;
  };
  space.launch = [](const NamedConfig& c, const Size& size) {
    Launch launch;
    launch.grid = {size.n[1] / c["tile_n"], size.n[0] / c["tile_m"], 1};
    launch.threads = c["threads_m"] * c["threads_n"];
    return launch;
  };
  return space;
}

Space GemmF16() {
  Space space;
  space.name = "gemm_f16";
  space.knobs = {{"tile_m", {32, 64, 128, 256}},
                 {"tile_n", {32, 64, 128, 256}},
                 {"tile_k", {16, 32, 64}},
                 {"warps_m", {1, 2, 4}},
                 {"warps_n", {1, 2, 4}},
                 {"stages", {2, 3, 4}},
                 {"pad", {0, 8}},
                 {"group_m", {1, 8}},
                 {"min_blocks", {1, 2}}};
  space.sizes = {{"2048x2048x2048", {2048, 2048, 2048}},
                 {"1024x1024x4096", {1024, 1024, 4096}},
                 {"8192x512x1024", {8192, 512, 1024}}};
  space.valid = [](const NamedConfig& c) {
    const int threads = c["warps_m"] * c["warps_n"] * 32;
    const int warp_m = c["tile_m"] / c["warps_m"];
    const int warp_n = c["tile_n"] / c["warps_n"];
    if (warp_m < 16 || warp_n < 16) return false;
    if (warp_m * warp_n < 512 || warp_m * warp_n > 64 * 64) return false;
    return c["tile_m"] * c["tile_k"] / 8 % threads == 0 &&
           c["tile_n"] * c["tile_k"] / 8 % threads == 0;
  };
  space.launch = [](const NamedConfig& c, const Size& size) {
    Launch launch;
    launch.grid = {size.n[0] / c["tile_m"] * (size.n[1] / c["tile_n"]), 1, 1};
    launch.threads = c["warps_m"] * c["warps_n"] * 32;
    launch.dynamic_shared_bytes = c["stages"] * 2 *
                                  (c["tile_m"] * (c["tile_k"] + c["pad"]) +
                                   c["tile_k"] * (c["tile_n"] + c["pad"]));
    return launch;
  };
  return space;
}

Space Convolution() {
  Space space;
  space.name = "convolution";
  space.knobs = {{"block_x", {16, 32, 48, 64, 96, 128, 256}},
                 {"block_y", {1, 2, 4, 8, 16}},
                 {"tile_x", {1, 2, 3, 4}},
                 {"tile_y", {1, 2, 4, 8}},
                 {"use_shared", {0, 1}},
                 {"use_padding", {0, 1}},
                 {"read_only", {0, 1}},
                 {"shared_filter", {0, 1}},
                 {"unroll_y", {1, 9}}};
  space.sizes = {{"2048x2048", {2048, 2048, 0}},
                 {"4096x4096", {4096, 4096, 0}},
                 {"1000x3000", {1000, 3000, 0}}};
  space.valid = [](const NamedConfig& c) {
    const int threads = c["block_x"] * c["block_y"];
    if (threads < 32 || threads > 1024) return false;
    if (c["tile_x"] * c["tile_y"] > 16) return false;
    return IdleKnobIs(c["use_shared"] && c["block_x"] % 32 != 0,
                      c["use_padding"], 0) &&
           IdleKnobIs(!c["use_shared"], c["read_only"], 0);
  };
  space.launch = [](const NamedConfig& c, const Size& size) {
    Launch launch;
    launch.grid = {CeilDiv(size.n[0], c["block_x"] * c["tile_x"]),
                   CeilDiv(size.n[1], c["block_y"] * c["tile_y"]), 1};
    launch.threads = c["block_x"] * c["block_y"];
    return launch;
  };
  return space;
}

Space Hotspot() {
  Space space;
  space.name = "hotspot";
  space.knobs = {{"block_x", {16, 32, 64, 128, 256}},
                 {"block_y", {1, 2, 4, 8, 16, 32}},
                 {"tile_x", {1, 2, 4}},
                 {"tile_y", {1, 2, 4}},
                 {"steps", {1, 2, 3, 6}},
                 {"shared_power", {0, 1}},
                 {"unroll_steps", {0, 1}},
                 {"min_blocks", {1, 2}}};
  space.sizes = {{"1024x1024", {1024, 1024, 0}},
                 {"4096x1024", {4096, 1024, 0}}};
  space.valid = [](const NamedConfig& c) {
    const int threads = c["block_x"] * c["block_y"];
    return threads >= 32 && threads <= 1024 &&
           IdleKnobIs(c["steps"] > 1, c["unroll_steps"], 0) &&
           IdleKnobIs(c["steps"] > 1, c["shared_power"], 0);
  };
  space.launch = [](const NamedConfig& c, const Size& size) {
    Launch launch;
    launch.grid = {CeilDiv(size.n[0], c["block_x"] * c["tile_x"]),
                   CeilDiv(size.n[1], c["block_y"] * c["tile_y"]), 1};
    launch.threads = c["block_x"] * c["block_y"];
    launch.passes = kHotspotSteps / c["steps"];
    return launch;
  };
  return space;
}

Space Nbody() {
  Space space;
  space.name = "nbody";
  space.knobs = {{"block", {32, 64, 128, 256, 512, 1024}},
                 {"bodies", {1, 2, 4, 8}},
                 {"split", {1, 2, 4}},
                 {"unroll", {1, 2, 4, 8, 16, 32}},
                 {"use_shared", {0, 1}},
                 {"use_soa", {0, 1}},
                 {"fast_rsqrt", {0, 1}}};
  space.sizes = {{"16384", {16384, 0, 0}}, {"24576", {24576, 0, 0}}};
  space.valid = [](const NamedConfig& c) {
    return c["block"] / c["split"] >= 16;
  };
  space.launch = [](const NamedConfig& c, const Size& size) {
    Launch launch;
    launch.grid = {size.n[0] / (c["block"] / c["split"] * c["bodies"]), 1, 1};
    launch.threads = c["block"];
    return launch;
  };
  return space;
}

Space Softmax() {
  Space space;
  space.name = "softmax";
  space.knobs = {{"threads_x", {32, 64, 128, 256, 512, 1024}},
                 {"rows", {1, 2, 4, 8, 16, 32}},
                 {"vec", {1, 2, 4}},
                 {"keep_shared", {0, 1}},
                 {"online", {0, 1}},
                 {"unroll", {1, 2, 4, 8}},
                 {"stream", {0, 1}},
                 {"fast_exp", {0, 1}}};
  space.sizes = {{"32768x256", {32768, 256, 0}},
                 {"8192x1024", {8192, 1024, 0}},
                 {"2048x8192", {2048, 8192, 0}}};
  space.valid = [](const NamedConfig& c) {
    return c["threads_x"] * c["rows"] <= 1024;
  };
  space.launch = [](const NamedConfig& c, const Size& size) {
    Launch launch;
    launch.grid = {size.n[0] / c["rows"], 1, 1};
    launch.threads = c["threads_x"] * c["rows"];
    if (c["keep_shared"]) {
      launch.dynamic_shared_bytes = c["rows"] * size.n[1] * 4;
    }
    return launch;
  };
  return space;
}

Space Transpose() {
  Space space;
  space.name = "transpose";
  space.knobs = {{"tile_x", {16, 32, 64, 128}}, {"tile_y", {16, 32, 64, 128}},
                 {"block_x", {8, 16, 32, 64}},  {"block_y", {2, 4, 8, 16, 32}},
                 {"use_shared", {0, 1}},        {"pad", {0, 1}},
                 {"order", {0, 1, 2}},          {"stream", {0, 1}}};
  space.sizes = {{"4096x4096", {4096, 4096, 0}},
                 {"16384x512", {16384, 512, 0}},
                 {"1000x6000", {1000, 6000, 0}}};
  space.valid = [](const NamedConfig& c) {
    const int threads = c["block_x"] * c["block_y"];
    return threads >= 64 && threads <= 1024 && c["block_x"] <= c["tile_x"] &&
           c["block_y"] <= c["tile_y"] &&
           IdleKnobIs(c["use_shared"] != 0, c["pad"], 0);
  };
  space.launch = [](const NamedConfig& c, const Size& size) {
    Launch launch;
    launch.grid = {CeilDiv(size.n[0], c["tile_x"]),
                   CeilDiv(size.n[1], c["tile_y"]), 1};
    launch.threads = c["block_x"] * c["block_y"];
    return launch;
  };
  return space;
}

Space Histogram() {
  Space space;
  space.name = "histogram";
  space.knobs = {{"block", {64, 128, 256, 512, 1024}},
                 {"blocks_per_sm", {1, 2, 4, 8, 16}},
                 {"copies", {1, 2, 4, 8, 16, 32}},
                 {"interleaved", {0, 1}},
                 {"vec", {1, 2, 4}},
                 {"unroll", {1, 2, 4}},
                 {"aggregate", {0, 1}}};
  // In 32-bit words; the second number says whether the bytes are skewed.
  space.sizes = {{"uniform_64M", {16 << 20, 0, 0}},
                 {"skewed_16M", {4 << 20, 1, 0}}};
  space.valid = [](const NamedConfig& c) {
    return c["copies"] <= c["block"] / 32 &&
           IdleKnobIs(c["copies"] > 1, c["interleaved"], 0);
  };
  space.launch = [](const NamedConfig& c, const Size&) {
    Launch launch;
    launch.grid = {kMultiprocessors * c["blocks_per_sm"], 1, 1};
    launch.threads = c["block"];
    return launch;
  };
  return space;
}

Space Stencil3d() {
  Space space;
  space.name = "stencil3d";
  space.knobs = {{"block_x", {16, 32, 64, 128}},
                 {"block_y", {1, 2, 4, 8, 16}},
                 {"tile_x", {1, 2}},
                 {"tile_y", {1, 2, 4}},
                 {"march_z", {4, 16, 64}},
                 {"use_shared", {0, 1}},
                 {"use_queue", {0, 1}},
                 {"unroll_z", {1, 4}}};
  space.sizes = {{"512x512x64", {512, 512, 64}},
                 {"200x200x200", {200, 200, 200}}};
  space.valid = [](const NamedConfig& c) {
    const int threads = c["block_x"] * c["block_y"];
    return threads >= 32 && threads <= 1024;
  };
  space.launch = [](const NamedConfig& c, const Size& size) {
    Launch launch;
    launch.grid = {CeilDiv(size.n[0], c["block_x"] * c["tile_x"]),
                   CeilDiv(size.n[1], c["block_y"] * c["tile_y"]),
                   CeilDiv(size.n[2], c["march_z"])};
    launch.threads = c["block_x"] * c["block_y"];
    return launch;
  };
  return space;
}

Space Spmv() {
  Space space;
  space.name = "spmv";
  space.knobs = {{"block", {64, 128, 256, 512, 1024}},
                 {"threads_per_row", {1, 2, 4, 8, 16, 32}},
                 {"rows_per_group", {1, 2, 4}},
                 {"consecutive", {0, 1}},
                 {"unroll", {1, 2, 4}},
                 {"hint", {0, 1, 2}},
                 {"shared_sum", {0, 1}}};
  // Rows, mean entries a row, and whether few rows hold many.
  space.sizes = {{"short_rows", {524288, 8, 0}},
                 {"long_rows", {65536, 128, 0}},
                 {"skewed_rows", {262144, 16, 1}}};
  space.valid = [](const NamedConfig& c) {
    return IdleKnobIs(c["rows_per_group"] > 1, c["consecutive"], 0) &&
           IdleKnobIs(c["threads_per_row"] > 1, c["shared_sum"], 0);
  };
  space.launch = [](const NamedConfig& c, const Size& size) {
    Launch launch;
    const int groups = c["block"] / c["threads_per_row"];
    launch.grid = {CeilDiv(size.n[0], groups * c["rows_per_group"]), 1, 1};
    launch.threads = c["block"];
    return launch;
  };
  return space;
}

}  // namespace

int NamedConfig::operator[](const char* name) const {
  for (size_t i = 0; i < knobs_.size(); ++i) {
    if (knobs_[i].name == name) return config_[i];
  }
  std::fprintf(stderr, "no knob is named '%s'\n", name);
  std::abort();
}

const std::vector<Space>& AllSpaces() {
  static const auto* const spaces = new std::vector<Space>{
      GemmF32(), GemmF16(),   Convolution(), Hotspot(),   Nbody(),
      Softmax(), Transpose(), Histogram(),   Stencil3d(), Spmv()};
  return *spaces;
}

std::vector<Config> ValidConfigs(const Space& space) {
  std::vector<Config> configs;
  std::vector<size_t> levels(space.knobs.size(), 0);
  Config config(space.knobs.size());
  while (true) {
    for (size_t i = 0; i < levels.size(); ++i) {
      config[i] = space.knobs[i].values[levels[i]];
    }
    if (space.valid(NamedConfig(space.knobs, config))) {
      configs.push_back(config);
    }
    size_t i = levels.size();
    while (i > 0 && ++levels[i - 1] == space.knobs[i - 1].values.size()) {
      levels[--i] = 0;
    }
    if (i == 0) return configs;
  }
}

std::string ConfigKey(const Config& config) {
  std::string key;
  for (const int value : config) {
    if (!key.empty()) key += ',';
    key += std::to_string(value);
  }
  return key;
}

}  // namespace optrail::tuning::recordings
