#include "service/session/operation_assembly.h"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "core/base/status_macros.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/seed.h"
#include "tests/testing/status_matchers.h"

namespace planewise {
namespace {

using ::testing::HasSubstr;

// The client's byte string: every position has its own value, as far as a byte can.
std::byte ByteAt(uint64_t position) {
  return static_cast<std::byte>(position * 31 + position / 251);
}

std::vector<std::byte> BytesAt(uint64_t position, size_t size) {
  std::vector<std::byte> bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = ByteAt(position + i);
  return bytes;
}

// A forward whose input [tokens, 1] in F32 begins at `position`.
v1::Operation Forward(uint64_t id, uint64_t position, int64_t tokens) {
  v1::Operation operation;
  operation.set_id(id);
  operation.set_input_position(position);
  v1::Forward& forward = *operation.mutable_forward();
  forward.set_model("m");
  forward.set_layer("l");
  forward.mutable_input()->set_data_type(v1::DATA_TYPE_F32);
  forward.mutable_input()->add_shape(tokens);
  forward.mutable_input()->add_shape(1);
  return operation;
}

v1::Operation EndStep(uint64_t id, uint64_t position) {
  v1::Operation operation;
  operation.set_id(id);
  operation.set_input_position(position);
  operation.mutable_end_step()->set_step(1);
  return operation;
}

class OperationAssemblyTest : public ::testing::Test {
 protected:
  OperationAssemblyTest() {
    limits_.input_window_bytes = 100;
    limits_.operations_ahead_max = 8;
    limits_.input_pieces_max = 4;
  }

  absl::Status Chunk(OperationAssembly& assembly, uint64_t position, size_t size) {
    const std::vector<std::byte> bytes = BytesAt(position, size);
    const absl::Span<const std::byte> pieces[] = {absl::MakeConstSpan(bytes)};
    PW_ASSIGN_OR_RETURN(const ChunkCopy copy, assembly.AddChunk(position, pieces));
    copy.Run();
    copy.Finish();
    return absl::OkStatus();
  }

  // Takes the front and checks its bytes.
  void ExpectFront(OperationAssembly& assembly, uint64_t position, size_t size) {
    ASSERT_TRUE(assembly.front_complete());
    const std::vector<HostBuffer> tensors = assembly.TakeFront();
    ASSERT_EQ(tensors.size(), 1u);
    EXPECT_EQ(std::vector<std::byte>(tensors[0].bytes().begin(), tensors[0].bytes().end()),
              BytesAt(position, size));
  }

  SessionLimits limits_;
  std::shared_ptr<MemoryBudget> budget_ = MemoryBudget::Create(1000);
};

TEST_F(OperationAssemblyTest, PutsAnOperationTogether) {
  OperationAssembly assembly(limits_, budget_, "session 7");
  EXPECT_EQ(assembly.front(), nullptr);
  PW_ASSERT_OK(assembly.AddOperation(Forward(1, 0, 5)));
  EXPECT_NE(assembly.front(), nullptr);
  PW_ASSERT_OK(Chunk(assembly, 0, 12));
  EXPECT_FALSE(assembly.front_complete());
  PW_ASSERT_OK(Chunk(assembly, 12, 8));
  ExpectFront(assembly, 0, 20);
  EXPECT_EQ(assembly.next_id(), 2u);
  EXPECT_EQ(budget_->used_bytes(), 0);
}

TEST_F(OperationAssemblyTest, AnOperationWaitsForCopiesThatRun) {
  OperationAssembly assembly(limits_, budget_, "session 7");
  PW_ASSERT_OK(assembly.AddOperation(Forward(1, 0, 5)));
  const std::vector<std::byte> bytes = BytesAt(0, 20);
  const absl::Span<const std::byte> first[] = {absl::MakeConstSpan(bytes).first(8)};
  const absl::Span<const std::byte> whole[] = {bytes};
  PW_ASSERT_OK_AND_ASSIGN(const ChunkCopy first_copy, assembly.AddChunk(0, first));
  PW_ASSERT_OK_AND_ASSIGN(const ChunkCopy rest_copy, assembly.AddChunk(0, whole));
  PW_ASSERT_OK_AND_ASSIGN(const ChunkCopy no_copy, assembly.AddChunk(0, whole));
  EXPECT_EQ(first_copy.size_bytes(), 8);
  EXPECT_EQ(rest_copy.size_bytes(), 12) << "all but what the first one copies";
  EXPECT_EQ(no_copy.size_bytes(), 0);
  rest_copy.Run();
  rest_copy.Finish();
  no_copy.Finish();
  EXPECT_FALSE(assembly.front_complete());
  first_copy.Run();
  EXPECT_FALSE(assembly.front_complete());
  // All of it has come, so nothing that is behind it waits for more.
  PW_ASSERT_OK(assembly.AddOperation(EndStep(2, 20)));
  EXPECT_FALSE(assembly.waits_for_front());
  first_copy.Finish();
  ExpectFront(assembly, 0, 20);
}

TEST_F(OperationAssemblyTest, ACopyForADroppedOperationFindsNoPlace) {
  OperationAssembly assembly(limits_, budget_, "session 7");
  PW_ASSERT_OK(assembly.AddOperation(Forward(1, 0, 5)));
  std::vector<std::byte> wrong(20, std::byte{0xEE});
  const absl::Span<const std::byte> piece[] = {wrong};
  PW_ASSERT_OK_AND_ASSIGN(const ChunkCopy late, assembly.AddChunk(0, piece));
  assembly.Forget();
  EXPECT_EQ(budget_->used_bytes(), 0);

  // The client resumes and sends everything again.
  PW_ASSERT_OK(assembly.AddOperation(Forward(1, 0, 5)));
  PW_ASSERT_OK(Chunk(assembly, 0, 12));
  late.Run();
  late.Finish();
  EXPECT_FALSE(assembly.front_complete());
  PW_ASSERT_OK(Chunk(assembly, 12, 8));
  ExpectFront(assembly, 0, 20);
}

// What a failing chunk has claimed must come all the same: a unary call that fails
// leaves its session alive, and is sent again.
TEST_F(OperationAssemblyTest, AChunkThatFailsLeavesNoCopyOpen) {
  limits_.input_pieces_max = 1;
  OperationAssembly assembly(limits_, budget_, "session 7");
  PW_ASSERT_OK(assembly.AddOperation(Forward(1, 0, 5)));
  const std::vector<std::byte> bytes = BytesAt(0, 40);
  const absl::Span<const std::byte> pieces[] = {absl::MakeConstSpan(bytes).first(20),
                                                absl::MakeConstSpan(bytes).subspan(20, 10),
                                                absl::MakeConstSpan(bytes).subspan(30)};
  EXPECT_THAT(assembly.AddChunk(0, pieces),
              HasReason(Reason::kLimitExceeded, HasSubstr("pieces")));
  ExpectFront(assembly, 0, 20);
}

TEST_F(OperationAssemblyTest, OperationsThatComeBackwardsAreHandedOutInOrder) {
  OperationAssembly assembly(limits_, budget_, "session 7");
  for (const uint64_t id : {3, 2, 1}) {
    EXPECT_FALSE(assembly.front_complete());
    PW_ASSERT_OK(assembly.AddOperation(Forward(id, (id - 1) * 8, 2)));
    PW_ASSERT_OK(Chunk(assembly, (id - 1) * 8, 8));
  }
  ExpectFront(assembly, 0, 8);
  ExpectFront(assembly, 8, 8);
  ExpectFront(assembly, 16, 8);
}

TEST_F(OperationAssemblyTest, ChunksMayComeTwiceLateAndAcrossOperations) {
  OperationAssembly assembly(limits_, budget_, "session 7");
  PW_ASSERT_OK(Chunk(assembly, 4, 8)) << "before its headers";
  PW_ASSERT_OK(Chunk(assembly, 2, 4)) << "partly twice";
  PW_ASSERT_OK(assembly.AddOperation(Forward(2, 8, 2)));
  PW_ASSERT_OK(assembly.AddOperation(Forward(1, 0, 2)));
  PW_ASSERT_OK(Chunk(assembly, 12, 4));
  PW_ASSERT_OK(Chunk(assembly, 0, 16)) << "all again";
  ExpectFront(assembly, 0, 8);
  PW_ASSERT_OK(Chunk(assembly, 0, 16)) << "and again when it is late";
  ExpectFront(assembly, 8, 8);
  PW_ASSERT_OK(Chunk(assembly, 8, 8));
  EXPECT_EQ(budget_->used_bytes(), 0);
}

TEST_F(OperationAssemblyTest, HoldsNoMoreThanTheWindowAndTheFront) {
  OperationAssembly assembly(limits_, budget_, "session 7");
  // 1 and 2 lie in the window [0, 100), 3 crosses its end.
  PW_ASSERT_OK(assembly.AddOperation(Forward(1, 0, 10)));
  PW_ASSERT_OK(assembly.AddOperation(Forward(2, 40, 10)));
  PW_ASSERT_OK(assembly.AddOperation(Forward(3, 80, 10)));
  EXPECT_EQ(assembly.input_limit(), 100u);
  EXPECT_EQ(budget_->used_bytes(), 80) << "3 has no memory yet";
  PW_ASSERT_OK(Chunk(assembly, 0, 100));
  EXPECT_EQ(budget_->used_bytes(), 100);
  EXPECT_THAT(Chunk(assembly, 100, 1),
              HasReason(Reason::kProtocolViolation, HasSubstr("crosses the input limit 100")));

  assembly.AdmitFront();
  EXPECT_EQ(assembly.input_limit(), 140u) << "the front takes no room in the window";
  EXPECT_EQ(budget_->used_bytes(), 120) << "3 lies in the window now";
  PW_ASSERT_OK(Chunk(assembly, 100, 20));
  ExpectFront(assembly, 0, 40);
  ExpectFront(assembly, 40, 40);
  ExpectFront(assembly, 80, 40);
}

TEST_F(OperationAssemblyTest, AnOperationAboveTheWindowIsAdmittedInItsTurn) {
  OperationAssembly assembly(limits_, budget_, "session 7");
  PW_ASSERT_OK(assembly.AddOperation(Forward(1, 0, 1)));
  PW_ASSERT_OK(assembly.AddOperation(Forward(2, 4, 100)));
  PW_ASSERT_OK(Chunk(assembly, 0, 100));
  EXPECT_EQ(budget_->used_bytes(), 100) << "bytes that came early are kept";
  ExpectFront(assembly, 0, 4);
  EXPECT_EQ(assembly.input_limit(), 104u);
  assembly.AdmitFront();
  EXPECT_EQ(assembly.input_limit(), 504u);
  EXPECT_EQ(budget_->used_bytes(), 400);
  for (uint64_t position = 100; position < 404; position += 76) {
    PW_ASSERT_OK(Chunk(assembly, position, 76));
  }
  ExpectFront(assembly, 4, 400);
}

TEST_F(OperationAssemblyTest, AnOperationThatDoesNotFitTheMemoryFailsAndNeedsNoBytes) {
  OperationAssembly assembly(limits_, budget_, "session 7");
  PW_ASSERT_OK(assembly.AddOperation(Forward(1, 0, 1000)));
  PW_ASSERT_OK(assembly.AddOperation(Forward(2, 4000, 1)));
  assembly.AdmitFront();
  EXPECT_THAT(assembly.front_failure(),
              HasReason(Reason::kMemoryShortfall, HasSubstr("session 7: input of operation 1")));
  PW_ASSERT_OK(Chunk(assembly, 0, 50)) << "dropped";
  EXPECT_EQ(budget_->used_bytes(), 4);
  assembly.DropFront();
  PW_ASSERT_OK(Chunk(assembly, 4000, 4));
  ExpectFront(assembly, 4000, 4);
}

TEST_F(OperationAssemblyTest, AMalformedOperationFailsInItsTurn) {
  OperationAssembly assembly(limits_, budget_, "session 7");
  PW_ASSERT_OK(assembly.AddOperation(Forward(1, 0, -1)));
  EXPECT_THAT(assembly.front_failure(), HasReason(Reason::kInvalidRequest));
  PW_ASSERT_OK(Chunk(assembly, 0, 10)) << "whatever it sends for it";
  assembly.DropFront();
  PW_ASSERT_OK(assembly.AddOperation(Forward(2, 10, 1)));
  assembly.AdmitFront();
  PW_ASSERT_OK(Chunk(assembly, 10, 4));
  ExpectFront(assembly, 10, 4);
  EXPECT_EQ(budget_->used_bytes(), 0);
}

struct ViolationCase {
  std::string name;
  std::vector<v1::Operation> before;
  v1::Operation operation;
  Reason reason;
  std::string message;
};

TEST_F(OperationAssemblyTest, RefusesHeadersThatContradict) {
  const ViolationCase kCases[] = {
      {"the same id with another header", {Forward(1, 0, 2)}, Forward(1, 0, 3),
       Reason::kProtocolViolation, "operation 1 came before with another header"},
      {"overlaps the one before", {Forward(1, 0, 2)}, Forward(2, 4, 2),
       Reason::kProtocolViolation, "operation 2: its inputs [4, 12) overlap"},
      {"overlaps the one behind", {Forward(2, 4, 2)}, Forward(1, 0, 2),
       Reason::kProtocolViolation, "operation 1: its inputs [0, 8) overlap"},
      {"too far ahead", {}, Forward(9, 0, 1), Reason::kLimitExceeded, "operations_ahead_max = 8"},
      {"ends past the last position", {}, Forward(1, ~uint64_t{0} - 3, 2),
       Reason::kProtocolViolation, "past 2^64"},
  };
  for (const ViolationCase& c : kCases) {
    SCOPED_TRACE(c.name);
    OperationAssembly assembly(limits_, budget_, "session 7");
    for (const v1::Operation& operation : c.before) PW_ASSERT_OK(assembly.AddOperation(operation));
    EXPECT_THAT(assembly.AddOperation(c.operation), HasReason(c.reason, HasSubstr(c.message)));
  }
}

TEST_F(OperationAssemblyTest, TheSameHeaderTwiceIsOnce) {
  OperationAssembly assembly(limits_, budget_, "session 7");
  PW_ASSERT_OK(assembly.AddOperation(Forward(1, 0, 2)));
  PW_ASSERT_OK(Chunk(assembly, 0, 4));
  PW_ASSERT_OK(assembly.AddOperation(Forward(1, 0, 2)));
  PW_ASSERT_OK(Chunk(assembly, 4, 4));
  ExpectFront(assembly, 0, 8);
}

TEST_F(OperationAssemblyTest, BoundsPiecesOutOfOrder) {
  OperationAssembly assembly(limits_, budget_, "session 7");
  for (uint64_t i = 0; i < 4; ++i) PW_ASSERT_OK(Chunk(assembly, 2 * i, 1));
  EXPECT_THAT(Chunk(assembly, 10, 1), HasReason(Reason::kLimitExceeded));

  OperationAssembly known(limits_, budget_, "session 7");
  PW_ASSERT_OK(known.AddOperation(Forward(1, 0, 10)));
  for (uint64_t i = 0; i < 4; ++i) PW_ASSERT_OK(Chunk(known, 2 * i, 1));
  EXPECT_THAT(Chunk(known, 10, 1), HasReason(Reason::kLimitExceeded));
}

TEST_F(OperationAssemblyTest, BoundsAChunk) {
  limits_.chunk_bytes_max = 10;
  OperationAssembly assembly(limits_, budget_, "session 7");
  EXPECT_THAT(Chunk(assembly, 0, 11),
              HasReason(Reason::kLimitExceeded, HasSubstr("chunk_bytes_max = 10")));
}

TEST_F(OperationAssemblyTest, SaysWhenOthersWaitForTheFront) {
  OperationAssembly assembly(limits_, budget_, "session 7");
  EXPECT_FALSE(assembly.waits_for_front());
  PW_ASSERT_OK(assembly.AddOperation(Forward(2, 8, 1)));
  EXPECT_FALSE(assembly.waits_for_front()) << "2 is not complete itself";
  PW_ASSERT_OK(assembly.AddOperation(EndStep(3, 12)));
  EXPECT_TRUE(assembly.waits_for_front());
  EXPECT_EQ(assembly.last_id(), 3u);
  const int64_t progress = assembly.front_progress();
  PW_ASSERT_OK(Chunk(assembly, 8, 4));
  EXPECT_EQ(assembly.front_progress(), progress) << "not the front's bytes";
  PW_ASSERT_OK(assembly.AddOperation(Forward(1, 0, 2)));
  EXPECT_GT(assembly.front_progress(), progress);
  EXPECT_TRUE(assembly.waits_for_front());
  PW_ASSERT_OK(Chunk(assembly, 0, 8));
  EXPECT_FALSE(assembly.waits_for_front());
}

TEST_F(OperationAssemblyTest, DropsAGapAndGoesOnBehindIt) {
  OperationAssembly assembly(limits_, budget_, "session 7");
  PW_ASSERT_OK(assembly.AddOperation(Forward(2, 8, 1)));
  PW_ASSERT_OK(Chunk(assembly, 8, 4));
  while (assembly.next_id() <= 2) assembly.DropFront();
  EXPECT_EQ(budget_->used_bytes(), 0);
  PW_ASSERT_OK(Chunk(assembly, 0, 12)) << "late bytes of both";
  PW_ASSERT_OK(assembly.AddOperation(Forward(3, 12, 1)));
  PW_ASSERT_OK(Chunk(assembly, 12, 4));
  ExpectFront(assembly, 12, 4);
}

TEST_F(OperationAssemblyTest, ForgetsWhatWasNotTaken) {
  OperationAssembly assembly(limits_, budget_, "session 7");
  PW_ASSERT_OK(assembly.AddOperation(Forward(1, 0, 2)));
  PW_ASSERT_OK(Chunk(assembly, 0, 16));
  ExpectFront(assembly, 0, 8);
  PW_ASSERT_OK(assembly.AddOperation(Forward(2, 8, 4)));
  assembly.Forget();
  EXPECT_EQ(budget_->used_bytes(), 0);
  EXPECT_EQ(assembly.next_id(), 2u);
  PW_ASSERT_OK(assembly.AddOperation(Forward(2, 8, 4)));
  PW_ASSERT_OK(Chunk(assembly, 8, 16));
  ExpectFront(assembly, 8, 16);
}

// Headers and chunks in any order, doubled and cut anywhere, give the operations'
// bytes in order, within the memory of the window and the front (invariants 1 to 3).
TEST_F(OperationAssemblyTest, AnyArrivalGivesTheSameOperations) {
  std::mt19937_64 bits(TestSeed());
  limits_.input_pieces_max = 1000;
  limits_.operations_ahead_max = 64;
  for (int round = 0; round < 300; ++round) {
    OperationAssembly assembly(limits_, budget_, "session 7");
    std::vector<v1::Operation> operations;
    std::vector<uint64_t> ends;
    uint64_t end = 0;
    for (uint64_t id = 1; id <= 20; ++id) {
      const int64_t tokens = bits() % 5 == 0 ? bits() % 60 : bits() % 10;
      operations.push_back(Forward(id, end, tokens));
      end += tokens * 4;
      ends.push_back(end);
    }
    size_t taken = 0;
    int64_t steps = 0;
    while (taken < operations.size()) {
      ASSERT_LT(++steps, 100000) << "no progress";
      // Headers come nearly in order, twice, and mixed with bytes.
      const size_t index = std::min<size_t>(operations.size() - 1, taken + bits() % 4);
      if (bits() % 3 == 0) {
        PW_ASSERT_OK(assembly.AddOperation(operations[index]));
      }
      const uint64_t limit = std::min(end, assembly.input_limit());
      const uint64_t known = taken == 0 ? 0 : ends[taken - 1];
      if (limit > known) {
        const uint64_t position = known + bits() % (limit - known);
        PW_ASSERT_OK(Chunk(assembly, position, bits() % (limit - position + 1)));
      }
      const int64_t front_bytes = assembly.front() == nullptr ? 0 : ends[taken] - known;
      ASSERT_LE(budget_->used_bytes(), limits_.input_window_bytes + front_bytes);
      if (bits() % 2 == 0) assembly.AdmitFront();
      if (assembly.front_complete()) {
        ExpectFront(assembly, known, ends[taken] - known);
        ++taken;
      }
    }
    ASSERT_EQ(budget_->used_bytes(), 0);
  }
}

}  // namespace
}  // namespace planewise
