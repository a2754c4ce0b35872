#include "graph/command/graph_command.h"

#include <gtest/gtest.h>

#include <sstream>

#include "absl/strings/str_cat.h"
#include "base/file/file.h"

namespace optrail::graph {
namespace {

constexpr char kFolder[] = "graph/testdata";

class TinyModelTest : public testing::TestWithParam<const char*> {
 protected:
  std::string Path(const char* ending) const {
    return JoinPath(kFolder, absl::StrCat(GetParam(), ending));
  }
  std::ostringstream out_;
};

TEST_P(TinyModelTest, IsImportedWholeAndMatchesOtherFrameworks) {
  GraphCheckCommand check;
  check.path = Path(".onnx");
  check.data = Path(".npz");
  const auto code = RunGraphCheck(check, out_);
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_EQ(*code, ExitCode::kOk) << out_.str();
}

TEST_P(TinyModelTest, IsShownInEveryView) {
  GraphShowCommand show;
  show.path = Path(".onnx");
  for (const GraphView view : {GraphView::kSummary, GraphView::kText,
                               GraphView::kDot, GraphView::kJson}) {
    show.view = view;
    const auto code = RunGraphShow(show, out_);
    ASSERT_TRUE(code.ok()) << code.status();
    EXPECT_EQ(*code, ExitCode::kOk) << out_.str();
  }
  const std::string text = out_.str();
  EXPECT_NE(text.find("everything is covered"), std::string::npos);
  EXPECT_NE(text.find("digraph"), std::string::npos);
  EXPECT_NE(text.find("\"nodes\":[{"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Exported, TinyModelTest,
                         testing::Values("tiny_dlrm", "tiny_mobilenet",
                                         "tiny_resnet_bn"));

TEST(GraphCommandTest, ADifferentResultFailsTheCheck) {
  GraphCheckCommand check;
  check.path = JoinPath(kFolder, "tiny_resnet_bn.onnx");
  check.data = JoinPath(kFolder, "tiny_resnet_bn.npz");
  check.tolerance = 0;
  std::ostringstream out;
  EXPECT_EQ(*RunGraphCheck(check, out), ExitCode::kCheckFailed) << out.str();
}

TEST(GraphCommandTest, DataOfAnotherModelIsRefusedByName) {
  GraphCheckCommand check;
  check.path = JoinPath(kFolder, "tiny_dlrm.onnx");
  check.data = JoinPath(kFolder, "tiny_resnet_bn.npz");
  std::ostringstream out;
  const auto code = RunGraphCheck(check, out);
  ASSERT_FALSE(code.ok());
  EXPECT_NE(code.status().message().find("tiny_resnet_bn.npz"),
            std::string::npos)
      << code.status();
}

TEST(GraphCommandTest, DimsNameThePartThatIsWrong) {
  EXPECT_EQ((*ParseDims("batch=8,sequence=128")).at("sequence"), 128);
  EXPECT_TRUE(ParseDims("")->empty());
  for (const char* text : {"batch", "batch=-1", "=3", "batch=x", "a=1=2"}) {
    EXPECT_FALSE(ParseDims(text).ok()) << text;
  }
}

}  // namespace
}  // namespace optrail::graph
