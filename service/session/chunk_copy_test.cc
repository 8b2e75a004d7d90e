#include "service/session/chunk_copy.h"

#include <cstdint>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "core/tensor/memory_budget.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace planewise {
namespace {

constexpr int64_t kTensors = 3;
constexpr int64_t kTensorBytes = 40;

// Tensors of an operation, zeroed.
std::shared_ptr<AssembledInputs> Inputs(MemoryBudget& budget) {
  auto inputs = std::make_shared<AssembledInputs>();
  for (int64_t i = 0; i < kTensors; ++i) {
    auto tensor = HostBuffer::Allocate(budget, MemoryUse::kTransport, kTensorBytes, "input");
    PW_EXPECT_OK(tensor);
    inputs->tensors.push_back(*std::move(tensor));
  }
  return inputs;
}

std::vector<std::byte> Numbered() {
  std::vector<std::byte> bytes(kTensors * kTensorBytes);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i + 1);
  return bytes;
}

std::vector<std::byte> Joined(const AssembledInputs& inputs) {
  std::vector<std::byte> joined;
  for (const HostBuffer& tensor : inputs.tensors) {
    joined.insert(joined.end(), tensor.bytes().begin(), tensor.bytes().end());
  }
  return joined;
}

TEST(ChunkCopyTest, WritesAcrossTensors) {
  const auto budget = MemoryBudget::Create(1000);
  const auto inputs = Inputs(*budget);
  const std::vector<std::byte> bytes = Numbered();
  const absl::Span<const std::byte> all = bytes;
  ChunkCopy copy;
  copy.Add(inputs, 30, all.subspan(30, 60));  // ten, forty and ten bytes
  copy.Add(inputs, 90, all.subspan(90));
  copy.Add(inputs, 0, all.first(30));
  EXPECT_EQ(copy.size_bytes(), kTensors * kTensorBytes);
  EXPECT_EQ(inputs->open_copies, 3);
  copy.Run();
  EXPECT_EQ(inputs->open_copies, 3);
  copy.Finish();
  EXPECT_EQ(inputs->open_copies, 0);
  EXPECT_EQ(Joined(*inputs), bytes);
}

TEST(ChunkCopyTest, SharesNoPlaceOfADroppedOperation) {
  const auto budget = MemoryBudget::Create(1000);
  auto inputs = Inputs(*budget);
  const std::vector<std::byte> bytes = Numbered();
  ChunkCopy copy;
  copy.Add(inputs, 0, bytes);
  inputs.reset();
  EXPECT_EQ(budget->used_bytes(), 0);
  copy.Run();
  copy.Finish();
}

// The session's thread drops an operation, or takes its tensors, while others copy.
TEST(ChunkCopyTest, CopiesRunBesideEachOtherAndBesideTheSession) {
  constexpr int64_t kChunkBytes = 4;
  const auto budget = MemoryBudget::Create(1000);
  const std::vector<std::byte> bytes = Numbered();
  for (int round = 0; round < 100; ++round) {
    auto inputs = Inputs(*budget);
    std::vector<ChunkCopy> copies(bytes.size() / kChunkBytes);
    for (size_t i = 0; i < copies.size(); ++i) {
      copies[i].Add(inputs, i * kChunkBytes,
                    absl::MakeConstSpan(bytes).subspan(i * kChunkBytes, kChunkBytes));
    }
    std::vector<std::thread> threads;
    for (size_t thread = 0; thread < 2; ++thread) {
      threads.emplace_back([&copies, thread] {
        for (size_t i = thread; i < copies.size(); i += 2) copies[i].Run();
      });
    }
    const bool dropped = round % 2 == 1;
    if (dropped) inputs.reset();
    for (std::thread& thread : threads) thread.join();
    for (const ChunkCopy& copy : copies) copy.Finish();
    if (!dropped) {
      EXPECT_EQ(inputs->open_copies, 0);
      EXPECT_EQ(Joined(*inputs), bytes);
      inputs.reset();
    }
    EXPECT_EQ(budget->used_bytes(), 0);
  }
}

}  // namespace
}  // namespace planewise
