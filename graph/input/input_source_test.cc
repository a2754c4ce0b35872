#include "graph/input/input_source.h"

#include <gtest/gtest.h>

#include "base/file/file.h"

namespace optrail::graph {
namespace {

TensorType F32(const Dims& dims) { return {optrail::proto::ELEMENT_F32, dims}; }

TensorType I64(const Dims& dims) { return {optrail::proto::ELEMENT_I64, dims}; }

const std::vector<SampleInput>& Inputs() {
  static const auto* const inputs =
      new std::vector<SampleInput>{{"x", F32({2})}, {"id", I64({})}};
  return *inputs;
}

std::string Write(const std::string& name, const std::string& text) {
  const std::string path = JoinPath(testing::TempDir(), name);
  EXPECT_TRUE(WriteFileAtomically(path, text).ok());
  return path;
}

struct Sample {
  float x[2] = {0, 0};
  int64_t id = 0;
};

absl::StatusOr<Sample> ParseText(const InputSource& source, int64_t sample,
                                 const std::string& text) {
  Sample values;
  char* const to[] = {reinterpret_cast<char*>(values.x),
                      reinterpret_cast<char*>(&values.id)};
  const absl::Status parsed = source.Parse(sample, text, to);
  if (!parsed.ok()) return parsed;
  return values;
}

TEST(InputSourceTest, ReadsALineForEachSample) {
  const std::string path =
      Write("lines.csv", "# x,x,id\n1.5,-2,3\n\n4e2 5\t6\r\n  \n-0.5, 7, -8");
  const auto source = OpenInput(path, Inputs());
  ASSERT_TRUE(source.ok()) << source.status();
  ASSERT_EQ((*source)->samples(), 3);
  const auto texts = (*source)->Read(0, 3);
  ASSERT_TRUE(texts.ok());
  const Sample expected[] = {{{1.5, -2}, 3}, {{400, 5}, 6}, {{-.5, 7}, -8}};
  for (int s = 0; s < 3; ++s) {
    const auto sample = ParseText(**source, s, (*texts)[s]);
    ASSERT_TRUE(sample.ok()) << sample.status();
    EXPECT_EQ(sample->x[0], expected[s].x[0]);
    EXPECT_EQ(sample->x[1], expected[s].x[1]);
    EXPECT_EQ(sample->id, expected[s].id);
  }
  const auto last = (*source)->Read(2, 1);
  ASSERT_TRUE(last.ok());
  EXPECT_EQ((*last)[0], (*texts)[2]);
}

TEST(InputSourceTest, NamesTheLineAndTheValueThatAreWrong) {
  const std::string path = Write("wrong.csv", "# a comment\n1,2,3\n1,x,3\n");
  const auto source = OpenInput(path, Inputs());
  ASSERT_TRUE(source.ok());
  const auto message = [&](const std::string& text) {
    return std::string(ParseText(**source, 1, text).status().message());
  };
  EXPECT_EQ(
      message("1,x,3"),
      path + ":3: value 1 of input \"x\" is \"x\"; expected 2 finite numbers");
  EXPECT_EQ(message("1,nan,3"),
            path +
                ":3: value 1 of input \"x\" is \"nan\"; expected 2 finite "
                "numbers");
  EXPECT_EQ(
      message("1"),
      path +
          ":3: value 1 of input \"x\" is missing; expected 2 finite numbers");
  EXPECT_EQ(message("1,2,3.5"), path +
                                    ":3: value 0 of input \"id\" is "
                                    "\"3.5\"; expected 1 integers");
  EXPECT_EQ(message("1,2,3,4"),
            path + ":3: \"4\" comes after the last value of a sample");
}

TEST(InputSourceTest, AnIndexThatLeavesItsTensorIsRefused) {
  Graph graph;
  const int table = graph.AddInput("table", F32({4, 10}));
  const int id = graph.AddInput("id", I64({4}));
  graph.AddInput("count", I64({4}));
  ASSERT_TRUE(
      graph.AddNode("rows", "gather", {table, id}, {{"axis", int64_t{1}}})
          .ok());
  const int narrow =
      graph.AddInput("narrow", {optrail::proto::ELEMENT_I32, {4}});
  const auto wide =
      graph.AddNode("wide", "cast", {narrow},
                    {{"to", static_cast<int64_t>(proto::ELEMENT_I64)}});
  ASSERT_TRUE(wide.ok()) << wide.status();
  ASSERT_TRUE(graph
                  .AddNode("more_rows", "gather", {table, *wide},
                           {{"axis", int64_t{0}}})
                  .ok());
  const auto inputs = SampleInputs(graph);
  ASSERT_TRUE(inputs.ok()) << inputs.status();
  EXPECT_EQ((*inputs)[1].index_bound, 10);
  EXPECT_EQ((*inputs)[2].index_bound, 0) << "no index";
  EXPECT_EQ((*inputs)[3].index_bound, 4) << "converted first";
  const std::string path = Write("indices.csv", "9\n-10\n10\n");
  const auto source = OpenInput(path, {(*inputs)[1]});
  ASSERT_TRUE(source.ok());
  int64_t value;
  char* const to[] = {reinterpret_cast<char*>(&value)};
  EXPECT_TRUE((*source)->Parse(0, "9", to).ok());
  EXPECT_TRUE((*source)->Parse(1, "-10", to).ok());
  EXPECT_EQ((*source)->Parse(2, "10", to).message(),
            path +
                ":3: input \"id\": value 0 is 10; expected an index from "
                "-10 to 9");
}

// Recommenders read the indices of several tables so.
TEST(InputSourceTest, IndicesInSlicesAreCheckedWhereAllAreIndices) {
  for (const int64_t last : {2, 1}) {
    Graph graph;
    const int ids = graph.AddInput("ids", I64({4, 2 + last}));
    for (int64_t begin = 0; begin < 3; ++begin) {
      const int table = graph.AddConstant(
          "table", Array::Zeros(F32({begin == 1 ? 500 : 20, 3})));
      const auto part = graph.AddNode("part", "slice", {ids},
                                      {{"starts", Dims{0, begin}},
                                       {"steps", Dims{1, 1}},
                                       {"dims", Dims{4, 1}}});
      ASSERT_TRUE(part.ok()) << part.status();
      ASSERT_TRUE(
          graph
              .AddNode("rows", "gather", {table, *part}, {{"axis", int64_t{0}}})
              .ok());
    }
    const auto inputs = SampleInputs(graph);
    ASSERT_TRUE(inputs.ok()) << inputs.status();
    // With four columns, the last is nobody's index.
    EXPECT_EQ((*inputs)[0].index_bound, last == 2 ? 0 : 500);
  }
}

TEST(InputSourceTest, RefusesWhatHasNoSamples) {
  EXPECT_EQ(
      OpenInput(Write("empty.csv", "# nothing\n"), Inputs()).status().code(),
      absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(OpenInput(JoinPath(testing::TempDir(), "absent"), Inputs())
                .status()
                .code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(OpenInput("/dev/null", Inputs()).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(InputSourceTest, ReadsAFolderOfArrays) {
  // Saved by NumPy, with the array "dense" among others.
  const auto npz = ReadFile("graph/testdata/tiny_dlrm.npz");
  ASSERT_TRUE(npz.ok()) << npz.status();
  const std::string folder = JoinPath(testing::TempDir(), "samples");
  ASSERT_TRUE(CreateDirectories(folder).ok());
  for (const char* name : {"b.npz", "a.npz", "notes.txt"}) {
    ASSERT_TRUE(WriteFileAtomically(JoinPath(folder, name), *npz).ok());
  }
  const auto source = OpenInput(folder, {{"absent", F32({1})}});
  ASSERT_TRUE(source.ok()) << source.status();
  EXPECT_EQ((*source)->samples(), 2);
  const auto texts = (*source)->Read(1, 1);
  ASSERT_TRUE(texts.ok());
  float value;
  char* const to[] = {reinterpret_cast<char*>(&value)};
  EXPECT_EQ((*source)->Parse(1, (*texts)[0], to).message(),
            JoinPath(folder, "b.npz") + ": has no array \"absent\"");
}

TEST(InputSourceTest, TakesTheBatchFromTheFirstDimension) {
  Graph graph;
  graph.AddInput("x", F32({8, 2}));
  graph.AddInput("id", I64({8}));
  const auto batch = BatchOf(graph);
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_EQ(*batch, 8);
  const auto inputs = SampleInputs(graph);
  ASSERT_TRUE(inputs.ok());
  EXPECT_EQ((*inputs)[0].type, F32({2}));
  EXPECT_EQ((*inputs)[1].type, I64({}));
  graph.AddInput("other", F32({4, 2}));
  EXPECT_EQ(BatchOf(graph).status().message(),
            "input \"other\" is f32[4,2]; expected a first dimension of 8, the "
            "batch of the inputs before it");
}

}  // namespace
}  // namespace optrail::graph
