// Stores, lookups and problems of optrail.h as a C program poses them, linked
// directly so that sanitizers see all of it.

#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/file/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/optrail.h"
#include "lib/test_handles.h"
#include "tuning/proto/store.pb.h"
#include "tuning/store/store_files.h"

namespace optrail::c_program {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// A folder with one tuned config of softmax for `hardware`.
std::string StoreFolder(const std::string& name, const std::string& hardware,
                        const std::string& config,
                        const std::string& bucket = "", bool ties = false) {
  const std::string folder = testing::TempDir() + "/" + name;
  optrail::proto::TunedConfig tuned;
  tuned.set_shape("rows=6,cols=40/f32");
  tuned.set_config(config);
  tuned.set_bucket(bucket);
  tuned.set_ties(ties);
  tuned.set_threads(1);
  tuned.set_cache_mode(optrail::proto::HOT);
  tuned.set_kernel_id("0123456789abcdef");
  const absl::Status status = optrail::tuning::WriteOverlay(
      folder, "softmax", hardware, optrail::proto::CPU, tuned);
  EXPECT_TRUE(status.ok()) << status;
  return folder;
}

TEST(Lookup, TellsWhereAConfigIsFrom) {
  const std::string config = OtherConfig();
  const Store store(StoreFolder("exact", HardwareId(), config).c_str());
  optrail_problem problem = ProblemOf("softmax", "rows=6,cols=40/f32");
  optrail_choice choice = OPTRAIL_CHOICE_INIT;
  ASSERT_EQ(optrail_lookup(store, &problem, &choice), OPTRAIL_OK)
      << optrail_message();
  EXPECT_EQ(choice.source, OPTRAIL_TUNED_EXACTLY);
  EXPECT_EQ(choice.config, config);
  EXPECT_EQ(choice.hardware_id, HardwareId());
  EXPECT_STREQ(choice.warning, "");
  EXPECT_NE(choice.unverified, 0);  // of no kernel that there is

  problem.shape = "rows=6,cols=48/f32";
  ASSERT_EQ(optrail_lookup(store, &problem, &choice), OPTRAIL_OK);
  EXPECT_STRNE(choice.config, "");
  // The neighbour answers where the space's model expects it to help here.
  if (choice.source == OPTRAIL_TUNED_FOR_OTHER_SHAPE) {
    EXPECT_NEAR(choice.shape_distance, std::log2(48. / 40), 1e-9);
    EXPECT_THAT(choice.warning, HasSubstr("in place of one for"));
  } else {
    EXPECT_EQ(choice.source, OPTRAIL_DEFAULT_CONFIG);
    EXPECT_THAT(choice.warning, HasSubstr("the default is used"));
  }

  problem.flags = OPTRAIL_EXACT_ONLY;
  EXPECT_EQ(optrail_lookup(store, &problem, &choice), OPTRAIL_NOT_FOUND);
}

TEST(Lookup, AConfigIsUsedInItsBucket) {
  const std::string config = OtherConfig();
  const Store store(
      StoreFolder("bucket", HardwareId(), config, "rows=6,cols=40..48/f32")
          .c_str());
  optrail_problem problem = ProblemOf("softmax", "rows=6,cols=48/f32");
  optrail_choice choice = OPTRAIL_CHOICE_INIT;
  ASSERT_EQ(optrail_lookup(store, &problem, &choice), OPTRAIL_OK);
  EXPECT_EQ(choice.source, OPTRAIL_TUNED_FOR_BUCKET);
  EXPECT_EQ(choice.config, config);
  EXPECT_THAT(choice.warning, HasSubstr("rows=6,cols=40..48/f32"));
  problem.shape = "rows=6,cols=49/f32";
  ASSERT_EQ(optrail_lookup(store, &problem, &choice), OPTRAIL_OK);
  EXPECT_EQ(choice.source, OPTRAIL_DEFAULT_CONFIG);
  problem.shape = "rows=6,cols=48/f32";
  problem.flags = OPTRAIL_EXACT_ONLY;
  EXPECT_EQ(optrail_lookup(store, &problem, &choice), OPTRAIL_NOT_FOUND);
}

TEST(Lookup, ADefaultMayBeVerifiedForABucket) {
  optrail_problem problem = ProblemOf("softmax", "rows=6,cols=48/f32");
  optrail_choice choice = OPTRAIL_CHOICE_INIT;
  const Store untuned;
  ASSERT_EQ(optrail_lookup(untuned, &problem, &choice), OPTRAIL_OK);
  const std::string by_default = choice.config;
  const Store store(StoreFolder("default_bucket", HardwareId(), OtherConfig(),
                                "rows=6,cols=40..48/f32", /*ties=*/true)
                        .c_str());
  ASSERT_EQ(optrail_lookup(store, &problem, &choice), OPTRAIL_OK);
  EXPECT_EQ(choice.source, OPTRAIL_TUNED_FOR_BUCKET);
  EXPECT_EQ(choice.config, by_default);
}

TEST(Lookup, AStoreOfAnotherMachineIsNotThisOnes) {
  const Store store(
      StoreFolder("other", "acme-abacus-1c", OtherConfig()).c_str());
  optrail_problem problem = ProblemOf("softmax", "rows=6,cols=40/f32");
  optrail_choice choice = OPTRAIL_CHOICE_INIT;
  ASSERT_EQ(optrail_lookup(store, &problem, &choice), OPTRAIL_OK);
  EXPECT_EQ(choice.source, OPTRAIL_DEFAULT_CONFIG);
  EXPECT_THAT(choice.warning, HasSubstr("another maker's hardware"));
  problem.flags = OPTRAIL_EXACT_ONLY;
  EXPECT_EQ(optrail_lookup(store, &problem, &choice), OPTRAIL_NOT_FOUND);
  EXPECT_THAT(optrail_message(), HasSubstr("another maker's hardware"));
  optrail_plan* plan = nullptr;
  EXPECT_EQ(optrail_plan_create(store, &problem, nullptr, &plan),
            OPTRAIL_NOT_FOUND);
}

TEST(Lookup, OfSimilarHardwareIsSaid) {
  const std::string similar = HardwareId() + "-similar";
  const Store store(StoreFolder("similar", similar, OtherConfig()).c_str());
  optrail_problem problem = ProblemOf("softmax", "rows=6,cols=40/f32");
  optrail_choice choice = OPTRAIL_CHOICE_INIT;
  ASSERT_EQ(optrail_lookup(store, &problem, &choice), OPTRAIL_OK);
  EXPECT_EQ(choice.source, OPTRAIL_TUNED_ON_OTHER_HARDWARE);
  EXPECT_EQ(choice.hardware_id, similar);
  problem.flags = OPTRAIL_EXACT_ONLY;
  EXPECT_EQ(optrail_lookup(store, &problem, &choice), OPTRAIL_NOT_FOUND);
  optrail_plan* plan = nullptr;
  EXPECT_EQ(optrail_plan_create(store, &problem, nullptr, &plan),
            OPTRAIL_NOT_FOUND);
  EXPECT_THAT(optrail_message(), HasSubstr(similar));
  EXPECT_EQ(optrail_plan_create(nullptr, &problem, nullptr, &plan),
            OPTRAIL_NOT_FOUND);
}

TEST(Lookup, OperatorsOfOthersMayBeAskedFor) {
  const std::string folder = testing::TempDir() + "/own";
  optrail::proto::TunedConfig tuned;
  tuned.set_shape("n=4/f32");
  tuned.set_config("tile=8");
  tuned.set_threads(1);
  tuned.set_cache_mode(optrail::proto::HOT);
  ASSERT_TRUE(optrail::tuning::WriteOverlay(folder, "our_own", HardwareId(),
                                            optrail::proto::CPU, tuned)
                  .ok());
  const Store store(folder.c_str());
  optrail_problem problem = ProblemOf("our_own", "n=4/f32");
  optrail_choice choice = OPTRAIL_CHOICE_INIT;
  ASSERT_EQ(optrail_lookup(store, &problem, &choice), OPTRAIL_OK)
      << optrail_message();
  EXPECT_STREQ(choice.config, "tile=8");
  problem.shape = "n=5/f32";
  ASSERT_EQ(optrail_lookup(store, &problem, &choice), OPTRAIL_OK);
  EXPECT_STREQ(choice.config, "");
  problem.op = "nobodys";
  EXPECT_EQ(optrail_lookup(store, &problem, &choice), OPTRAIL_NOT_FOUND);
  EXPECT_THAT(optrail_message(),
              AllOf(HasSubstr("nobodys"), HasSubstr("matmul")));
}

TEST(Lookup, ManyThreadsGetOneAnswer) {
  const Store store;
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        const std::string shape =
            "rows=" + std::to_string(1 + (i + t) % 7) + ",cols=40/f32";
        const optrail_problem problem = ProblemOf("softmax", shape.c_str());
        optrail_choice choice = OPTRAIL_CHOICE_INIT;
        if (optrail_lookup(store, &problem, &choice) != OPTRAIL_OK ||
            std::strlen(choice.config) == 0) {
          ++wrong;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Digest, IsOfWhatTheStoreHolds) {
  const std::string config = OtherConfig();
  const Store plain, one(StoreFolder("one", HardwareId(), config).c_str()),
      again(StoreFolder("again", HardwareId(), config).c_str());
  EXPECT_EQ(std::strlen(optrail_store_digest(one)), 16u);
  EXPECT_STREQ(optrail_store_digest(one), optrail_store_digest(again));
  EXPECT_STRNE(optrail_store_digest(one), optrail_store_digest(plain));
  EXPECT_STREQ(optrail_store_digest(nullptr), "");
}

TEST(Open, SaysWhatIsWrongWithAStore) {
  optrail_store* store = nullptr;
  EXPECT_EQ(optrail_store_open("/nowhere/at/all", &store), OPTRAIL_NOT_FOUND);
  EXPECT_THAT(optrail_message(), HasSubstr("/nowhere/at/all"));
  const std::string file = testing::TempDir() + "/broken.textproto";
  ASSERT_TRUE(optrail::WriteFileAtomically(file, "operator_name: 7\n").ok());
  EXPECT_EQ(optrail_store_open(file.c_str(), &store), OPTRAIL_INVALID_ARGUMENT);
  EXPECT_THAT(optrail_message(), HasSubstr("broken.textproto:1:"));
  EXPECT_EQ(store, nullptr);
  EXPECT_EQ(optrail_store_open(nullptr, nullptr), OPTRAIL_INVALID_ARGUMENT);
}

// A store is read as `optrail store show` reads it.
TEST(Open, RefusesWhatTheCommandLineRefuses) {
  const std::string folder = testing::TempDir() + "/mixed";
  const std::string path = folder + "/softmax/hw.textproto";
  ASSERT_TRUE(optrail::CreateDirectories(folder + "/softmax").ok());
  const auto refused = [&](const std::string& op, const std::string& hardware,
                           const std::string& more, const char* message) {
    ASSERT_TRUE(optrail::WriteFileAtomically(
                    path, "operator_name: \"" + op + "\" hardware_id: \"" +
                              hardware + "\" device_kind: CPU\n" + more)
                    .ok());
    optrail_store* store = nullptr;
    EXPECT_EQ(optrail_store_open(folder.c_str(), &store),
              OPTRAIL_INVALID_ARGUMENT);
    EXPECT_THAT(optrail_message(), HasSubstr(message));
    EXPECT_THAT(optrail_message(), HasSubstr("hw.textproto"));
  };
  refused("matmul", "hw", "", "expected \"softmax\" on \"hw\"");
  refused("softmax", "other", "", "about operator \"softmax\" on \"other\"");
  for (const char* ns : {"nan", "-5", "inf"}) {
    refused("softmax", "hw",
            std::string("tuned { shape: \"rows=4,cols=4/f32\" config: \"a=1\" "
                        "threads: 1 cache_mode: HOT time_ns: ") +
                ns + " }",
            "time_ns is ");
  }
  ASSERT_TRUE(optrail::RemoveFile(path).ok());
  // Nobody waits for a pipe.
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  optrail_store* store = nullptr;
  for (const std::string& at : {folder, path, std::string("/dev/zero")}) {
    EXPECT_EQ(optrail_store_open(at.c_str(), &store),
              OPTRAIL_FAILED_PRECONDITION);
    EXPECT_THAT(optrail_message(), HasSubstr("no regular file"));
  }
  if (geteuid() == 0) return;  // root may read everything
  ASSERT_TRUE(optrail::RemoveFile(path).ok());
  ASSERT_TRUE(optrail::WriteFileAtomically(path, "").ok());
  ASSERT_EQ(chmod(path.c_str(), 0), 0);
  EXPECT_EQ(optrail_store_open(folder.c_str(), &store),
            OPTRAIL_FAILED_PRECONDITION);
}

TEST(ShapeText, IsMadeOfDimensions) {
  char text[64];
  const int64_t dims[] = {1, 8, 8, 4, 6, 3, 3};
  ASSERT_EQ(optrail_shape_text("conv2d", dims, 7, "stride=2,padding=1", "f32",
                               text, sizeof(text)),
            OPTRAIL_OK)
      << optrail_message();
  EXPECT_STREQ(text, "n=1,h=8,w=8,c=4,k=6,r=3,s=3/padding=1,stride=2/f32");
  EXPECT_EQ(optrail_shape_text("conv2d", dims, 6, nullptr, "f32", text, 64),
            OPTRAIL_INVALID_ARGUMENT);
  EXPECT_EQ(optrail_shape_text("conv2d", dims, 7, nullptr, "f32", text, 8),
            OPTRAIL_INVALID_ARGUMENT);
  EXPECT_EQ(optrail_shape_text("conv2d", dims, 7, "pading=1", "f32", text, 64),
            OPTRAIL_INVALID_ARGUMENT);
  EXPECT_THAT(optrail_message(), HasSubstr("pading"));
}

TEST(Structs, OfOtherHeadersAreUnderstood) {
  // An older header, that ended before the flags.
  struct {
    size_t struct_size;
    const char *op, *shape, *device, *backend, *cache_mode;
    int32_t threads;
  } older = {offsetof(optrail_problem, flags),
             "softmax",
             "rows=6,cols=40/f32",
             nullptr,
             nullptr,
             nullptr,
             0};
  const Store store;
  optrail_choice choice = OPTRAIL_CHOICE_INIT;
  EXPECT_EQ(optrail_lookup(store, reinterpret_cast<optrail_problem*>(&older),
                           &choice),
            OPTRAIL_OK)
      << optrail_message();
  // A newer one, with a field that this library does not know.
  struct {
    optrail_problem known;
    int64_t wish;
  } newer = {ProblemOf("softmax", "rows=6,cols=40/f32"), 0};
  newer.known.struct_size = sizeof(newer);
  EXPECT_EQ(optrail_lookup(store, &newer.known, &choice), OPTRAIL_OK);
  newer.wish = 1;
  EXPECT_EQ(optrail_lookup(store, &newer.known, &choice),
            OPTRAIL_INVALID_ARGUMENT);
  EXPECT_THAT(optrail_message(), HasSubstr("newer"));
}

TEST(Problems, ThatCannotBePosedAreStatuses) {
  const struct {
    const char *op, *shape;
    optrail_status status;
    const char* message;
  } kCases[] = {
      {nullptr, "n=1/f32", OPTRAIL_INVALID_ARGUMENT, "op is empty"},
      {"nosuch", "n=1/f32", OPTRAIL_NOT_FOUND, "nosuch"},
      {"matmul", nullptr, OPTRAIL_INVALID_ARGUMENT, "shape is empty"},
      {"matmul", "m=1", OPTRAIL_INVALID_ARGUMENT, "m=1"},
      {"matmul", "m=1,n=1/f32", OPTRAIL_INVALID_ARGUMENT, ""},
      {"matmul", "m=0,n=1,k=1/f32", OPTRAIL_INVALID_ARGUMENT, "\"m\""},
      {"matmul", "m=-4,n=1,k=1/f32", OPTRAIL_INVALID_ARGUMENT, ""},
      {"matmul", "m=1,n=1,k=1/f33", OPTRAIL_INVALID_ARGUMENT, "f33"},
      {"conv2d", "n=1,h=7,w=6,c=5,k=4,r=3,s=3,padding=1,stride=2/f32",
       OPTRAIL_INVALID_ARGUMENT, "r=3,s=3/padding=1,stride=2/f32"},
      {"matmul", "m=1,n=1,k=1/padding=1/f32", OPTRAIL_INVALID_ARGUMENT,
       "padding"},
      {"matmul", "m=9223372036854775807,n=9223372036854775807,k=2/f32",
       OPTRAIL_INVALID_ARGUMENT, ""},
      {"matmul", "m=99999999999999999999,n=1,k=1/f32", OPTRAIL_INVALID_ARGUMENT,
       ""},
      {"softmax", "rows=4611686018427387904,cols=2/f32",
       OPTRAIL_INVALID_ARGUMENT, ""},
      {"conv2d", "n=1,h=2,w=2,c=1,k=1,r=3,s=3/f32", OPTRAIL_INVALID_ARGUMENT,
       ""},
  };
  for (const auto& c : kCases) {
    const optrail_problem problem = ProblemOf(c.op, c.shape);
    optrail_plan* plan = nullptr;
    EXPECT_EQ(optrail_plan_create(nullptr, &problem, nullptr, &plan), c.status)
        << (c.shape == nullptr ? "" : c.shape) << ": " << optrail_message();
    EXPECT_THAT(optrail_message(), HasSubstr(c.message));
    EXPECT_EQ(plan, nullptr);
    optrail_plan_destroy(plan);
  }
  optrail_problem problem = ProblemOf("matmul", "m=1,n=1,k=1/f32", -1);
  optrail_plan* plan = nullptr;
  EXPECT_EQ(optrail_plan_create(nullptr, &problem, nullptr, &plan),
            OPTRAIL_INVALID_ARGUMENT);
  problem.threads = 1;
  problem.flags = 128;
  EXPECT_EQ(optrail_plan_create(nullptr, &problem, nullptr, &plan),
            OPTRAIL_INVALID_ARGUMENT);
  problem.flags = 0;
  problem.backend = "nosuch";
  EXPECT_EQ(optrail_plan_create(nullptr, &problem, nullptr, &plan),
            OPTRAIL_UNSUPPORTED);
  problem.backend = "Not A Name";
  EXPECT_EQ(optrail_plan_create(nullptr, &problem, nullptr, &plan),
            OPTRAIL_INVALID_ARGUMENT);
  problem.backend = nullptr;
  problem.device = "tpu";
  EXPECT_EQ(optrail_plan_create(nullptr, &problem, nullptr, &plan),
            OPTRAIL_INVALID_ARGUMENT);
}

TEST(Problems, DoNotWriteIntoLogsWhatTheyWant) {
  optrail_problem problem =
      ProblemOf("soft\n\x1b[31mmax", "rows=6,cols=40/f32");
  optrail_choice choice = OPTRAIL_CHOICE_INIT;
  const Store store;
  EXPECT_EQ(optrail_lookup(store, &problem, &choice), OPTRAIL_NOT_FOUND);
  EXPECT_THAT(optrail_message(), HasSubstr("soft\\n\\x1b[31mmax"));
  const std::string shape(2'000'000, 'm');
  problem = ProblemOf("softmax", shape.c_str());
  EXPECT_EQ(optrail_lookup(store, &problem, &choice), OPTRAIL_INVALID_ARGUMENT);
  EXPECT_LT(std::strlen(optrail_message()), 5000u);
}

TEST(Problems, OfMutatedTextsAreAnsweredOrRefused) {
  const std::string texts[] = {"matmul",
                               "softmax",
                               "conv2d",
                               "m=33,n=47,k=29/f32",
                               "rows=6,cols=40/f32",
                               "n=1,h=7,w=6,c=5,k=4,r=3,s=3/padding=1/f32"};
  const std::string letters = "=,/0192mnk\x80 -";
  std::mt19937 random(7);
  int made = 0;
  for (int i = 0; i < 400; ++i) {
    std::string op = texts[random() % 3], shape = texts[3 + random() % 3];
    for (unsigned n = random() % 3; n > 0; --n) {
      std::string& text = random() % 8 == 0 ? op : shape;
      text[random() % text.size()] = letters[random() % letters.size()];
    }
    const optrail_problem problem = ProblemOf(op.c_str(), shape.c_str());
    optrail_plan* plan = nullptr;
    const optrail_status status =
        optrail_plan_create(nullptr, &problem, nullptr, &plan);
    EXPECT_EQ(status == OPTRAIL_OK, plan != nullptr);
    EXPECT_NE(status, OPTRAIL_INTERNAL) << op << " " << shape;
    EXPECT_STRNE(optrail_message(), "");
    made += status == OPTRAIL_OK;
    optrail_plan_destroy(plan);
  }
  EXPECT_GT(made, 20);
}

TEST(Statuses, HaveNames) {
  EXPECT_STREQ(optrail_status_name(OPTRAIL_OUT_OF_MEMORY), "OUT_OF_MEMORY");
  EXPECT_STREQ(optrail_status_name(static_cast<optrail_status>(99)), "UNKNOWN");
  EXPECT_EQ(optrail_version(), OPTRAIL_VERSION);
  EXPECT_THAT(optrail_operators(), HasSubstr("softmax"));
}

}  // namespace
}  // namespace optrail::c_program
