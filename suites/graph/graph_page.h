#ifndef OPTRAIL_SUITES_GRAPH_GRAPH_PAGE_H_
#define OPTRAIL_SUITES_GRAPH_GRAPH_PAGE_H_

// GraphPage shows one run of a graph as a page without scripts: the steps by
// time, which fusion rules applied and why others did not, and the arena as a
// picture of offsets over steps.
//
//   GraphPage page;
//   page.title = "resnet50_bn";
//   page.steps = {{"conv1", "conv_bn_relu", "n=1,...", 1.2e6}};
//   OPTRAIL_RETURN_IF_ERROR(
//       WriteFileAtomically("graph.html", GraphPageText(page)));
//
// Names may be hostile: they enter the page as text.

#include <cstdint>
#include <string>
#include <vector>

namespace optrail::suites {

struct GraphPage {
  std::string title;
  std::vector<std::string> facts;  // a sentence each, above the tables

  struct Step {
    std::string name, kernel, computes;
    double time_ns = 0;  // 0: not known
  };
  std::vector<Step> steps;  // in the order of execution

  struct Rule {
    std::string rule;
    int places = 0;
    std::string why_not;  // "": applied
  };
  std::vector<Rule> rules;

  // Bytes from `offset` on are a buffer's from step `first` to step `last`.
  struct Buffer {
    std::string name;
    int64_t first = 0, last = 0, offset = 0, bytes = 0;
  };
  std::vector<Buffer> buffers;
  int64_t arena_bytes = 0;
};

// Of more than kMostRows steps those that take longest have rows, of more
// buffers the largest are drawn; the page says how many are left out.
inline constexpr size_t kMostRows = 1000;

std::string GraphPageText(const GraphPage& page);

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_GRAPH_GRAPH_PAGE_H_
