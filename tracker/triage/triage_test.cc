#include "tracker/triage/triage.h"

#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optrail::tracker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kNow = 1'800'000'000'000'000'000;

std::string CommitId(int i) { return absl::StrCat("c", i); }

// Ten points at commits c0, c10, c20, ... whose positions are 0, 10, 20, ...
std::shared_ptr<const PointRuns> RunsAt(int position) {
  PointRuns runs;
  runs.commit.set_id(CommitId(position));
  runs.commit.set_first_parent_position(position);
  return std::make_shared<const PointRuns>(runs);
}

Series TenPoints(const std::string& name = "BM_Sort/1024") {
  Series series;
  series.key.benchmark.set_operator_name(name);
  series.key.metric = "time";
  series.key.unit = "ns";
  series.key.hardware_id = "machine";
  series.key.branch = "main";
  series.text = CanonicalText(series.key);
  for (int i = 0; i < 10; ++i) {
    Point point;
    point.runs = RunsAt(10 * i);
    point.value = 1;
    series.points.push_back(point);
  }
  return series;
}

ChangePoint ChangeAt(int index, double relative = .1) {
  ChangePoint change;
  change.index = change.earliest = change.latest = index;
  change.relative_change = relative;
  change.relative_change_low = relative - .01;
  change.relative_change_high = relative + .01;
  return change;
}

proto::TriageRecord Record(proto::TriageKind kind, const std::string& scope,
                           int commit, const std::string& id = "") {
  static int count = 0;
  ++count;
  proto::TriageRecord record;
  record.set_kind(kind);
  record.set_record_id(id.empty() ? absl::StrCat("id", count) : id);
  record.set_created_unix_ns(count);
  EXPECT_TRUE(SetScope(scope, &record).ok());
  record.mutable_commit()->set_id(CommitId(commit));
  record.mutable_commit()->set_first_parent_position(commit);
  record.set_text("because");
  return record;
}

proto::TriageRecord Undo(const std::string& target, const std::string& id) {
  proto::TriageRecord record;
  record.set_kind(proto::UNDO);
  record.set_record_id(id);
  record.set_supersedes(target);
  return record;
}

ChangeState StateAt(const std::vector<proto::TriageRecord>& records, int index,
                    double relative = .1) {
  return TriageBook(records, kNow)
      .OpinionOf(TenPoints(), ChangeAt(index, relative))
      .state;
}

TEST(TriageBookTest, WithoutRecordsEveryChangeIsNew) {
  EXPECT_EQ(StateAt({}, 5), ChangeState::kNew);
}

TEST(TriageBookTest, AnAcknowledgementHoldsWhereAnalysisMovesTheChange) {
  const auto record = Record(proto::ACKNOWLEDGE, "BM_.*", 50);
  EXPECT_EQ(StateAt({record}, 2), ChangeState::kNew);
  EXPECT_EQ(StateAt({record}, 3), ChangeState::kAcknowledged);
  EXPECT_EQ(StateAt({record}, 5), ChangeState::kAcknowledged);
  EXPECT_EQ(StateAt({record}, 7), ChangeState::kAcknowledged);
  EXPECT_EQ(StateAt({record}, 8), ChangeState::kNew);
}

TEST(TriageBookTest, OnlyAnAnswerToARemovalAcknowledgesOne) {
  for (const bool has_positions : {true, false}) {
    Series series = TenPoints();
    for (Point& point : series.points) {
      auto runs = std::make_shared<PointRuns>(*point.runs);
      runs->first_started_unix_ns = 0;
      if (!has_positions) runs->commit.clear_first_parent_position();
      point.runs = std::move(runs);
    }
    const auto acknowledges = [&](const proto::TriageRecord& record) {
      return TriageBook({record}, kNow).RemovalAcknowledged(series) != nullptr;
    };
    auto slower = Record(proto::ACKNOWLEDGE, "BM_.*", 60);
    EXPECT_FALSE(acknowledges(slower));
    proto::AnsweredChange* answered = slower.add_answered();
    answered->set_series(series.text);
    answered->mutable_last()->set_id(CommitId(60));
    EXPECT_FALSE(acknowledges(slower));
    // Its commit was not measured, so it may mean a change to come.
    auto later = Record(proto::ACKNOWLEDGE, "BM_.*", 95);
    EXPECT_FALSE(acknowledges(later));
    answered = later.add_answered();
    answered->set_series(series.text);
    answered->mutable_last_before()->set_id(CommitId(90));
    EXPECT_TRUE(acknowledges(later));
    later.mutable_commit()->set_id(CommitId(90));
    later.mutable_commit()->set_first_parent_position(90);
    EXPECT_FALSE(acknowledges(later)) << "it was measured there";
  }
}

TEST(TriageBookTest, ACommitThatWasNotMeasuredStandsForTheNextOneThatWas) {
  // Between the points 4 and 5.
  const auto record = Record(proto::ACKNOWLEDGE, "BM_.*", 43);
  EXPECT_EQ(PlaceOf(record.commit(), TenPoints()), 5);
  // After the last and before the first point.
  EXPECT_EQ(PlaceOf(Record(proto::NOTE, "x", 95).commit(), TenPoints()),
            absl::nullopt);
  EXPECT_EQ(PlaceOf(Record(proto::NOTE, "x", -5).commit(), TenPoints()),
            absl::nullopt);
  proto::Commit unknown;
  unknown.set_id("elsewhere");
  EXPECT_EQ(PlaceOf(unknown, TenPoints()), absl::nullopt);
  EXPECT_EQ(PlaceOf(proto::Commit(), TenPoints()), absl::nullopt);
}

TEST(TriageBookTest, PatternsMatchWholeNamesAndSeriesTheirText) {
  EXPECT_EQ(StateAt({Record(proto::ACKNOWLEDGE, "BM_Sort", 50)}, 5),
            ChangeState::kNew);
  EXPECT_EQ(StateAt({Record(proto::ACKNOWLEDGE, "BM_Sort/\\d+", 50)}, 5),
            ChangeState::kAcknowledged);
  EXPECT_EQ(StateAt({Record(proto::ACKNOWLEDGE, TenPoints().text, 50)}, 5),
            ChangeState::kAcknowledged);
  EXPECT_EQ(
      StateAt({Record(proto::ACKNOWLEDGE, TenPoints("BM_Other").text, 50)}, 5),
      ChangeState::kNew);
}

TEST(TriageBookTest, ASeriesWithTheCharactersOfPatternsMeansItselfOnly) {
  const Series hostile = TenPoints("a|b.*(c)|time");
  const TriageBook book({Record(proto::ACKNOWLEDGE, hostile.text, 50)}, kNow);
  EXPECT_EQ(book.OpinionOf(hostile, ChangeAt(5)).state,
            ChangeState::kAcknowledged);
  EXPECT_EQ(book.OpinionOf(TenPoints("a"), ChangeAt(5)).state,
            ChangeState::kNew);
}

TEST(TriageBookTest, AnExpectationCoversItsSizeAndDirectionOnly) {
  auto record = Record(proto::EXPECT, "BM_.*", 50);
  EXPECT_EQ(StateAt({record}, 5, .5), ChangeState::kExpected);
  record.set_effect(.05);
  EXPECT_EQ(StateAt({record}, 5, .04), ChangeState::kExpected);
  EXPECT_EQ(StateAt({record}, 5, .055), ChangeState::kExpected);  // noise
  EXPECT_EQ(StateAt({record}, 5, .2), ChangeState::kNew);
  EXPECT_EQ(StateAt({record}, 5, -.04), ChangeState::kNew);
  record.set_effect(-.1);
  EXPECT_EQ(StateAt({record}, 5, -.1), ChangeState::kExpected);
  EXPECT_EQ(StateAt({record}, 5, -.3), ChangeState::kNew);
  EXPECT_EQ(StateAt({record}, 5, .05), ChangeState::kNew);
}

// An answer to +10% whose suspects are the commits c41 to c50.
proto::TriageRecord Answer(proto::TriageKind kind) {
  auto record = Record(kind, "BM_.*", 50);
  proto::AnsweredChange* answered = record.add_answered();
  answered->set_series(TenPoints().text);
  answered->mutable_last_before()->set_id(CommitId(40));
  answered->mutable_last_before()->set_first_parent_position(40);
  answered->mutable_last()->set_id(CommitId(50));
  answered->mutable_last()->set_first_parent_position(50);
  answered->set_effect_low(.08);
  answered->set_effect_high(.12);
  return record;
}

ChangeState StateOf(const proto::TriageRecord& record, int index, int earliest,
                    double relative, const Series& series = TenPoints()) {
  ChangePoint change = ChangeAt(index, relative);
  change.earliest = earliest;
  change.latest = index;
  return TriageBook({record}, kNow).OpinionOf(series, change).state;
}

TEST(TriageBookTest, AnAnswerCoversWhatItNamedAndNothingNewerOrLarger) {
  for (const auto& [kind, covered] :
       {std::make_pair(proto::ACKNOWLEDGE, ChangeState::kAcknowledged),
        std::make_pair(proto::EXPECT, ChangeState::kExpected)}) {
    const auto record = Answer(kind);
    EXPECT_EQ(StateOf(record, 5, 5, .1), covered);
    EXPECT_EQ(StateOf(record, 5, 5, .125), covered) << "noise";
    EXPECT_EQ(StateOf(record, 5, 5, .05), covered) << "smaller";
    EXPECT_EQ(StateOf(record, 6, 5, .1), covered) << "its place is not sure";
    EXPECT_EQ(StateOf(record, 4, 4, .1), covered) << "seen earlier by a point";
    EXPECT_EQ(StateOf(record, 2, 2, .1), ChangeState::kNew) << "older";
    EXPECT_EQ(StateOf(record, 6, 6, .1), ChangeState::kNew) << "newer";
    EXPECT_EQ(StateOf(record, 5, 5, .3), ChangeState::kNew) << "larger";
    EXPECT_EQ(StateOf(record, 6, 5, .43), ChangeState::kNew) << "both as one";
    EXPECT_EQ(StateOf(record, 5, 5, -.1), ChangeState::kNew) << "the other way";
  }
}

TEST(TriageBookTest, ASuspectThatIsMeasuredLaterIsStillAnswered) {
  Series series = TenPoints();
  Point between = series.points[5];
  between.runs = RunsAt(43);
  series.points.insert(series.points.begin() + 5, between);
  EXPECT_EQ(StateOf(Answer(proto::ACKNOWLEDGE), 5, 5, .1, series),
            ChangeState::kAcknowledged);
}

// `history thin` removes runs: the first one behind shows what they changed.
TEST(TriageBookTest, AnAnsweredCommitWhoseRunIsGoneStandsForTheNextOne) {
  Series series = TenPoints();
  series.points.erase(series.points.begin() + 5);  // at c50, which was answered
  const auto record = Answer(proto::ACKNOWLEDGE);
  EXPECT_EQ(StateOf(record, 5, 5, .1, series), ChangeState::kAcknowledged);
  EXPECT_EQ(StateOf(record, 5, 5, .3, series), ChangeState::kNew) << "larger";
  EXPECT_EQ(StateOf(record, 6, 6, .1, series), ChangeState::kNew) << "newer";
}

// A pattern answers many series at once, most of which have not changed.
TEST(TriageBookTest, AnAnswerToNoChangeBeginsNoLevel) {
  const Series series = TenPoints();
  for (const auto& [low, high, begins] :
       {std::make_tuple(-.01, .01, false), std::make_tuple(-.2, .2, true),
        std::make_tuple(.05, .1, true), std::make_tuple(-.1, -.05, true)}) {
    auto record = Answer(proto::ACKNOWLEDGE);
    record.mutable_answered(0)->set_effect_low(low);
    record.mutable_answered(0)->set_effect_high(high);
    EXPECT_EQ(
        TriageBook({record}, kNow).LastAcknowledged(series, 10).has_value(),
        begins)
        << low << " " << high;
  }
}

TEST(TriageBookTest, SaysWhichAnswerDoesNotCoverAChangeNearby) {
  const Opinion opinion = TriageBook({Answer(proto::ACKNOWLEDGE)}, kNow)
                              .OpinionOf(TenPoints(), ChangeAt(5, .3));
  EXPECT_EQ(opinion.state, ChangeState::kNew);
  EXPECT_EQ(opinion.reason,
            "+8.0% to +12.0% was acknowledged at c50 (because)");
}

TEST(TriageBookTest, SaysWhatWasExpectedOfAChangeBeyondIt) {
  auto record = Record(proto::EXPECT, "BM_.*", 50);
  record.set_effect(.05);
  const Opinion opinion =
      TriageBook({record}, kNow).OpinionOf(TenPoints(), ChangeAt(5, .2));
  EXPECT_THAT(opinion.reason, HasSubstr("expected was +5%"));
}

TEST(TriageBookTest, AMuteEndsAtItsInstant) {
  auto record = Record(proto::MUTE, "BM_.*", 0);
  record.set_until_unix_ns(kNow + 1);
  EXPECT_EQ(StateAt({record}, 5), ChangeState::kMuted);
  record.set_until_unix_ns(kNow);
  EXPECT_EQ(StateAt({record}, 5), ChangeState::kNew);
  EXPECT_EQ(TriageBook({record}, kNow).entries()[0].state,
            RecordState::kExpired);
}

TEST(TriageBookTest, TheStrongestOpinionWinsInAnyOrder) {
  auto mute = Record(proto::MUTE, "BM_.*", 0);
  mute.set_until_unix_ns(kNow + 1);
  const auto ack = Record(proto::ACKNOWLEDGE, "BM_.*", 50);
  EXPECT_EQ(StateAt({mute, ack}, 5), ChangeState::kAcknowledged);
  EXPECT_EQ(StateAt({ack, mute}, 5), ChangeState::kAcknowledged);
}

TEST(TriageBookTest, UndoTakesBackAndCanBeTakenBack) {
  const auto ack = Record(proto::ACKNOWLEDGE, "BM_.*", 50, "ack");
  EXPECT_EQ(StateAt({ack, Undo("ack", "u1")}, 5), ChangeState::kNew);
  EXPECT_EQ(StateAt({Undo("ack", "u1"), ack}, 5), ChangeState::kNew);
  EXPECT_EQ(StateAt({ack, Undo("ack", "u1"), Undo("u1", "u2")}, 5),
            ChangeState::kAcknowledged);
  EXPECT_EQ(
      StateAt({ack, Undo("ack", "u1"), Undo("u1", "u2"), Undo("ack", "u3")}, 5),
      ChangeState::kNew);
}

TEST(TriageBookTest, UndosThatRunInACircleDoNotHangIt) {
  const auto ack = Record(proto::ACKNOWLEDGE, "BM_.*", 50, "ack");
  const TriageBook book(
      {ack, Undo("u2", "u1"), Undo("u1", "u2"), Undo("u3", "u3")}, kNow);
  EXPECT_EQ(book.entries().size(), 4);
  EXPECT_EQ(book.OpinionOf(TenPoints(), ChangeAt(5)).state,
            ChangeState::kAcknowledged);
}

TEST(TriageBookTest, NotesStandBesideAndJudgeNothing) {
  auto note = Record(proto::NOTE, "BM_.*", 50);
  note.set_text("new compiler");
  const Opinion opinion =
      TriageBook({note}, kNow).OpinionOf(TenPoints(), ChangeAt(5));
  EXPECT_EQ(opinion.state, ChangeState::kNew);
  EXPECT_THAT(opinion.notes, ElementsAre("new compiler"));
}

TEST(TriageBookTest, RecordsOfUnknownKindOrBrokenPatternSpeakOfNothing) {
  auto record = Record(proto::ACKNOWLEDGE, "BM_.*", 50);
  record.set_pattern("(");
  auto newer = Record(proto::ACKNOWLEDGE, "BM_.*", 50);
  newer.set_kind(static_cast<proto::TriageKind>(77));
  EXPECT_EQ(StateAt({record, newer}, 5), ChangeState::kNew);
}

TEST(TriageBookTest, FindsRecordsByTheBeginningOfTheirId) {
  const TriageBook book({Record(proto::NOTE, "x", 0, "20261120T090807Z-1a2b"),
                         Record(proto::NOTE, "x", 0, "20261121T090807Z-1a3c")},
                        kNow);
  EXPECT_EQ((*book.Find("20261121"))->record.record_id(),
            "20261121T090807Z-1a3c");
  EXPECT_EQ((*book.Find("1a2"))->record.record_id(), "20261120T090807Z-1a2b");
  EXPECT_THAT(std::string(book.Find("1a").status().message()),
              HasSubstr("could be any of"));
  EXPECT_TRUE(absl::IsNotFound(book.Find("zz").status()));
  EXPECT_TRUE(absl::IsNotFound(book.Find("").status()));
}

TEST(SetScopeTest, RefusesWhatIsNeitherSeriesNorPattern) {
  proto::TriageRecord record;
  EXPECT_FALSE(SetScope("", &record).ok());
  EXPECT_THAT(std::string(SetScope("a(b", &record).message()),
              HasSubstr("regular expression"));
}

TEST(ParseEffectTest, WantsAPercentage) {
  EXPECT_DOUBLE_EQ(*ParseEffect("+5%"), .05);
  EXPECT_DOUBLE_EQ(*ParseEffect("-2.5%"), -.025);
  for (const char* bad : {"", "5", "%", "nan%", "-100%", "x%", "inf%"}) {
    EXPECT_FALSE(ParseEffect(bad).ok()) << bad;
  }
}

TEST(ParseEndOfDayTest, WantsADay) {
  EXPECT_EQ(*ParseEndOfDay("1970-01-01"), int64_t{86400} * 1'000'000'000);
  for (const char* bad : {"", "2026-13-01", "2026-02-30", "tomorrow",
                          "2026-1-1", "2026-12-24T00:00"}) {
    EXPECT_FALSE(ParseEndOfDay(bad).ok()) << bad;
  }
}

}  // namespace
}  // namespace optrail::tracker
