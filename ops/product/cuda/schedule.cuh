// What the clusters of a persistent product do, one after the other: tiles of
// the result, a whole one or a part of its sums over k at a time. Plain
// arithmetic, which the host tests too (schedule_test.cc).

// A tile (of a whole cluster) and some of its steps of k. `parts` clusters have
// one part each, which follow each other.
struct Work {
  int tile, row, column;
  int step, end;
  int part, parts;
  int first;  // the cluster that has part 0; -1 where parts are all alike
};

// Without `kSplit` there is one part. Else `parts`; with 0 parts (stream-K:
// Osama et al., PPoPP 2023) the last one or two tiles of each cluster are cut
// where its share of all their steps ends, wherever in a tile that is, so that
// all clusters end at the same time. There have to be as many steps as
// clusters.
template <bool kSplit>
class Schedule {
 public:
  // `group` rows of tiles are walked together, column by column, so that what
  // runs at once reads few different rows and columns.
  __device__ Schedule(int rows, int columns, int steps, int group, int parts,
                      int cluster, int clusters)
      : rows_(rows),
        columns_(columns),
        steps_(steps),
        group_(group),
        parts_(kSplit && parts > 0 ? parts : 1),
        cluster_(cluster),
        clusters_(clusters),
        item_(cluster),
        items_(rows * columns * parts_) {
    if (kSplit && parts == 0 && items_ % clusters != 0) {
      const int most = items_ / clusters - 1;
      items_ = whole_ = most > 0 ? most * clusters : 0;
      at_ = First(cluster);
      end_ = First(cluster + 1);
    }
  }

  // False: there is no more.
  __device__ bool Next(Work& work) {
    if (item_ < items_) {
      Find(item_ / parts_, work);
      work.part = item_ % parts_;
      work.parts = parts_;
      work.first = -1;
      work.step = (int)((long long)steps_ * work.part / parts_);
      work.end = (int)((long long)steps_ * (work.part + 1) / parts_);
      item_ += clusters_;
      return true;
    }
    if (!kSplit || at_ >= end_) return false;
    const int tile = at_ / steps_, from = tile * steps_;
    Find(whole_ + tile, work);
    work.step = at_ - from;
    work.end = end_ - from < steps_ ? end_ - from : steps_;
    work.first = ClusterOf(from);
    work.part = cluster_ - work.first;
    work.parts = ClusterOf(from + steps_ - 1) - work.first + 1;
    at_ = from + work.end;
    return true;
  }

  // Where a part's sums are kept, in tiles. Of tiles that are cut, a cluster
  // has at most two with others: the one that it begins in and the one it ends
  // in.
  __device__ long long PlaceOf(const Work& work, int part) const {
    return work.first < 0 ? work.tile + (long long)part * rows_ * columns_
                          : 2 * (work.first + part) + (part == 0);
  }

 private:
  __device__ void Find(int tile, Work& work) const {
    const int in_group = group_ * columns_;
    const int first = tile / in_group * group_;
    const int rows = rows_ - first < group_ ? rows_ - first : group_;
    work.tile = tile;
    work.row = first + tile % in_group % rows;
    work.column = tile % in_group / rows;
  }
  __device__ long long CutSteps() const {
    return (long long)(rows_ * columns_ - whole_) * steps_;
  }
  // The first step of a cluster's share, and whose share a step is in.
  __device__ int First(int cluster) const {
    return (int)(CutSteps() * cluster / clusters_);
  }
  __device__ int ClusterOf(int step) const {
    return (int)(((step + 1ll) * clusters_ - 1) / CutSteps());
  }

  int rows_, columns_, steps_, group_, parts_, cluster_, clusters_;
  int item_, items_;                  // tiles' parts: the next, and the last
  int whole_ = 0, at_ = 0, end_ = 0;  // tiles before the cut ones; their steps
};
