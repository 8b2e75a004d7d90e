#include "service/session/result_queue.h"

#include <cstring>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace planewise {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ResultQueueTest : public ::testing::Test {
 protected:
  ResultQueueTest() {
    limits_.result_budget_bytes = 100;
    limits_.chunk_bytes_max = 8;
    limits_.operations_ahead_max = 6;
  }

  // Adds a result whose tensors hold these letters.
  void Add(ResultQueue& queue, const std::vector<std::string>& tensors) {
    std::vector<HostBuffer> buffers;
    for (const std::string& text : tensors) {
      buffers.push_back(*HostBuffer::Allocate(*budget_, MemoryUse::kTransport,
                                              static_cast<int64_t>(text.size()), "result"));
      if (!text.empty()) std::memcpy(buffers.back().data(), text.data(), text.size());
    }
    queue.Add(v1::Operation(), v1::OperationResult(), std::move(buffers));
  }

  // Frames until there is none: headers as "#id@position", chunks as "position:bytes".
  static std::vector<std::string> Drain(ResultQueue& queue) {
    std::vector<std::string> frames;
    while (true) {
      if (const auto header = queue.NextHeader()) {
        const v1::OperationResult& result = header->header.result();
        frames.push_back("#" + std::to_string(result.id()) + "@" +
                         std::to_string(result.result_position()));
      } else if (const auto chunk = queue.NextChunk()) {
        frames.push_back(std::to_string(chunk->header.chunk().position()) + ":" +
                         std::string(reinterpret_cast<const char*>(chunk->data),
                                     chunk->size_bytes));
      } else {
        return frames;
      }
    }
  }

  SessionLimits limits_;
  std::shared_ptr<MemoryBudget> budget_ = MemoryBudget::Create(1000);
};

TEST_F(ResultQueueTest, SendsHeadersFirstAndBytesUpToTheClientsLimit) {
  ResultQueue queue(limits_);
  Add(queue, {"abcdefghij", "KL"});
  Add(queue, {});
  Add(queue, {"mnop"});
  EXPECT_THAT(Drain(queue), ElementsAre("#1@0", "#2@12", "#3@12")) << "no byte may be sent yet";
  queue.RaiseLimit(9);
  EXPECT_THAT(Drain(queue), ElementsAre("0:abcdefgh", "8:i"));
  queue.RaiseLimit(5);
  EXPECT_THAT(Drain(queue), ElementsAre()) << "the limit never falls";
  queue.RaiseLimit(1000);
  EXPECT_THAT(Drain(queue), ElementsAre("9:j", "10:KL", "12:mnop"));
}

TEST_F(ResultQueueTest, KeepsResultsUntilAcknowledged) {
  ResultQueue queue(limits_);
  Add(queue, {std::string(40, 'a')});
  Add(queue, {std::string(50, 'b')});
  EXPECT_EQ(budget_->used_bytes(), 90);
  EXPECT_TRUE(queue.HasRoomFor(10));
  EXPECT_FALSE(queue.HasRoomFor(11));
  EXPECT_THAT(queue.Acknowledge(3),
              HasReason(Reason::kProtocolViolation, HasSubstr("operations through 2")));
  PW_ASSERT_OK(queue.Acknowledge(1));
  EXPECT_EQ(budget_->used_bytes(), 50);
  EXPECT_EQ(queue.Find(1), nullptr);
  EXPECT_NE(queue.Find(2), nullptr);
  EXPECT_EQ(queue.Find(3), nullptr);
  EXPECT_EQ(queue.executed_through(), 2u);
  PW_ASSERT_OK(queue.Acknowledge(0)) << "an old acknowledgement that comes late";
  EXPECT_FALSE(queue.HasRoomFor(1000));
  PW_ASSERT_OK(queue.Acknowledge(2));
  EXPECT_TRUE(queue.HasRoomFor(1000)) << "on its own, nothing else held";
  EXPECT_EQ(budget_->used_bytes(), 0);
}

TEST_F(ResultQueueTest, BoundsResultsWithoutBytes) {
  ResultQueue queue(limits_);
  for (int i = 0; i < 6; ++i) {
    EXPECT_TRUE(queue.HasRoomFor(0));
    Add(queue, {});
  }
  EXPECT_FALSE(queue.HasRoomFor(0));
  PW_ASSERT_OK(queue.Acknowledge(1));
  EXPECT_TRUE(queue.HasRoomFor(0));
}

TEST_F(ResultQueueTest, ARestartSendsAllThatIsHeldAgain) {
  ResultQueue queue(limits_);
  Add(queue, {"ab"});
  Add(queue, {"cd"});
  queue.RaiseLimit(100);
  Drain(queue);
  PW_ASSERT_OK(queue.Acknowledge(1));
  queue.Restart();
  EXPECT_THAT(Drain(queue), ElementsAre("#2@2", "2:cd"));
}

TEST_F(ResultQueueTest, RepeatsOneResult) {
  ResultQueue queue(limits_);
  Add(queue, {"ab"});
  Add(queue, {"cd"});
  queue.RaiseLimit(100);
  Drain(queue);
  queue.Repeat(2);
  queue.Repeat(2);
  EXPECT_THAT(Drain(queue), ElementsAre("#2@2", "2:cd"));
  PW_ASSERT_OK(queue.Acknowledge(2));
  queue.Repeat(2);
  EXPECT_THAT(Drain(queue), ElementsAre()) << "acknowledged: nothing";
}

TEST_F(ResultQueueTest, ForgottenBytesAreNotSent) {
  ResultQueue queue(limits_);
  Add(queue, {"abcdefghij"});
  Add(queue, {"kl"});
  queue.RaiseLimit(4);
  EXPECT_THAT(Drain(queue), ElementsAre("#1@0", "#2@10", "0:abcd"));
  PW_ASSERT_OK(queue.Acknowledge(1)) << "the client wants no more of it";
  queue.RaiseLimit(100);
  EXPECT_THAT(Drain(queue), ElementsAre("10:kl"));
}

TEST_F(ResultQueueTest, BytesOnTheirWayOutliveTheAcknowledgement) {
  ResultQueue queue(limits_);
  Add(queue, {"ab"});
  queue.RaiseLimit(100);
  queue.NextHeader();
  std::optional<OutgoingFrame> frame = queue.NextChunk();
  PW_ASSERT_OK(queue.Acknowledge(1));
  EXPECT_EQ(budget_->used_bytes(), 2);
  EXPECT_EQ(static_cast<char>(frame->data[1]), 'b');
  frame.reset();
  EXPECT_EQ(budget_->used_bytes(), 0);
}

}  // namespace
}  // namespace planewise
