#include "suites/tune/bucket_parts.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "base/text/units.h"

namespace optrail::suites {
namespace {

std::vector<int64_t> Sizes(const BucketPart& part) {
  const proto::Shape smallest = part.range.Corners()[0];
  std::vector<int64_t> sizes;
  for (const proto::Dim& dim : smallest.dims()) sizes.push_back(dim.value());
  return sizes;
}

// The largest part of the shapes that may lose more than the bound although
// that many random ones do not, with 95% confidence.
double ShareBeyond(int random_shapes) {
  return 1 - std::pow(.05, 1.0 / std::max(random_shapes, 1));
}

Cell LoseMoreCell(const BucketPart& part) {
  if (part.each_is_known) return Cell::Number(0, "none, each was measured");
  if (part.random_shapes == 0) return Cell::None();
  const double share = ShareBeyond(part.random_shapes);
  return Cell::Number(
      share, absl::StrCat("at most ", FormatPercent(share, 0), " of shapes"));
}

}  // namespace

std::vector<proto::Shape> FewShapes(const tuning::Bucket& range) {
  const std::vector<proto::Shape> corners = range.Corners();
  std::vector<proto::Shape> shapes = {corners[0]};
  for (int i = 0; i < corners[0].dims_size(); ++i) {
    const int64_t low = corners[0].dims(i).value();
    int64_t high = low;
    for (const proto::Shape& corner : corners) {
      high = std::max(high, corner.dims(i).value());
    }
    const size_t count = shapes.size();
    if (high - low >= static_cast<int64_t>(kFewShapes / count)) return {};
    for (int64_t size = low + 1; size <= high; ++size) {
      for (size_t j = 0; j < count; ++j) {
        shapes.push_back(shapes[j]);
        shapes.back().mutable_dims(i)->set_value(size);
      }
    }
  }
  return shapes;
}

void SortParts(size_t first, std::vector<BucketPart>* parts) {
  std::stable_sort(parts->begin() + static_cast<std::ptrdiff_t>(first),
                   parts->end(), [](const BucketPart& a, const BucketPart& b) {
                     return Sizes(a) < Sizes(b);
                   });
}

std::string FormatParts(const std::vector<BucketPart>& parts,
                        OutputFormat format) {
  Table table({{"task"},
               {"shapes", Align::kLeft, "", Clip::kFold},
               {"state"},
               {"gain", Align::kRight},
               {"loss", Align::kRight, "loss_at_most"},
               {"lose more", Align::kRight, "share_beyond_loss_at_most"},
               {"sessions", Align::kRight},
               {"config", Align::kLeft, "", Clip::kFold},
               {"why", Align::kLeft, "", Clip::kFold}});
  for (const BucketPart& part : parts) {
    // A range that was not reached has neither.
    const bool unknown = part.state == "not reached";
    table.AddRow({part.task, part.range.Text(), part.state,
                  unknown ? Cell::None()
                          : Cell::Number(part.gain, FormatChange(part.gain)),
                  unknown ? Cell::None()
                          : Cell::Number(part.loss, FormatPercent(part.loss)),
                  LoseMoreCell(part), Cell::Integer(part.sessions), part.config,
                  part.why});
  }
  return table.Format(format, TerminalWidth());
}

}  // namespace optrail::suites
