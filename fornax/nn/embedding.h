// Embedding: rows of a table by index.
#pragma once

#include "fornax/nn/cloneable.h"
#include "fornax/nn/holder.h"
#include "fornax/nn/options.h"

namespace fornax::nn {

namespace functional {

using EmbeddingFuncOptions = nn::EmbeddingFuncOptions;

// input: int64 or int32 of any shape; the result has weight's columns as one more dimension. With
// max_norm, rows of weight that are used and longer are first shortened in place.
Tensor embedding(const Tensor& input, const Tensor& weight,
                 const EmbeddingFuncOptions& options = {});
Tensor one_hot(const Tensor& input, int64_t num_classes = -1);

}  // namespace functional

// Weight from N(0, 1), the padding row zeros.
class EmbeddingImpl : public Cloneable<EmbeddingImpl> {
 public:
  EmbeddingImpl(int64_t num_embeddings, int64_t embedding_dim);
  explicit EmbeddingImpl(EmbeddingOptions options);
  void reset() override;
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(const Tensor& input);
  EmbeddingOptions options;
  Tensor weight;
};

class Embedding : public ModuleHolder<EmbeddingImpl> {
 public:
  using ModuleHolder<EmbeddingImpl>::ModuleHolder;
  using Impl = EmbeddingImpl;
  // With this table [num_embeddings, embedding_dim]; frozen unless options say otherwise.
  static Embedding from_pretrained(const Tensor& embeddings,
                                   const EmbeddingFromPretrainedOptions& options = {});
};

}  // namespace fornax::nn
