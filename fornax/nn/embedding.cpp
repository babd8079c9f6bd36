#include "fornax/nn/embedding.h"

#include <ostream>

#include "fornax/autograd/autograd.h"
#include "fornax/nn/init.h"
#include "fornax/ops/factory.h"
#include "fornax/ops/functions.h"

namespace fornax::nn {

namespace functional {
namespace {

void shorten_rows(const Tensor& weight, const Tensor& indices, double max_norm, double norm_type) {
  NoGradGuard no_grad;
  Tensor flat = indices.reshape({-1});
  Tensor rows = weight.index_select(0, flat);
  Tensor scale = (rows.norm(norm_type, {1}, true).add(1e-7)).reciprocal().mul(max_norm);
  weight.index_copy_(0, flat, rows.mul(scale.clamp_max(1.0)));
}

int64_t wrapped_row(int64_t row, int64_t rows) {
  FX_CHECK(row >= -rows && row < rows, kIndex, "embedding: padding_idx ", row,
           " must be within the ", rows, " rows of the weight");
  return row < 0 ? row + rows : row;
}

}  // namespace

Tensor embedding(const Tensor& input, const Tensor& weight, const EmbeddingFuncOptions& o) {
  int64_t padding = o.padding_idx() ? wrapped_row(*o.padding_idx(), weight.size(0)) : -1;
  if (o.max_norm()) shorten_rows(weight, input, *o.max_norm(), o.norm_type());
  return fornax::embedding(weight, input, padding, o.scale_grad_by_freq(), o.sparse());
}

Tensor one_hot(const Tensor& input, int64_t num_classes) {
  return fornax::one_hot(input, num_classes);
}

}  // namespace functional

EmbeddingImpl::EmbeddingImpl(int64_t num_embeddings, int64_t embedding_dim)
    : EmbeddingImpl(EmbeddingOptions(num_embeddings, embedding_dim)) {}
EmbeddingImpl::EmbeddingImpl(EmbeddingOptions o) : options(std::move(o)) { EmbeddingImpl::reset(); }

void EmbeddingImpl::reset() {
  int64_t rows = options.num_embeddings(), columns = options.embedding_dim();
  if (options.padding_idx())
    options.padding_idx(functional::wrapped_row(*options.padding_idx(), rows));
  if (!options._weight().defined()) {
    weight = register_parameter("weight", empty({rows, columns}));
    reset_parameters();
    return;
  }
  FX_CHECK(options._weight().sizes() == IntArrayRef({rows, columns}), kShape,
           "Embedding: the weight has sizes ", options._weight().sizes(),
           ", num_embeddings and embedding_dim are ", rows, " and ", columns);
  weight = register_parameter("weight", options._weight().detach());
}

void EmbeddingImpl::reset_parameters() {
  init::normal_(weight);
  if (options.padding_idx()) {
    NoGradGuard no_grad;
    init::zeros_(weight.select(0, *options.padding_idx()));
  }
}

Tensor EmbeddingImpl::forward(const Tensor& input) {
  EmbeddingFuncOptions o;
  o.padding_idx(options.padding_idx()).max_norm(options.max_norm());
  o.norm_type(options.norm_type()).scale_grad_by_freq(options.scale_grad_by_freq());
  return functional::embedding(input, weight, o.sparse(options.sparse()));
}

void EmbeddingImpl::pretty_print(std::ostream& stream) const {
  stream << "fornax::nn::Embedding(num_embeddings=" << options.num_embeddings()
         << ", embedding_dim=" << options.embedding_dim();
  if (options.padding_idx()) stream << ", padding_idx=" << *options.padding_idx();
  if (options.max_norm()) stream << ", max_norm=" << *options.max_norm();
  if (options.norm_type() != 2) stream << ", norm_type=" << options.norm_type();
  if (options.scale_grad_by_freq()) stream << ", scale_grad_by_freq=true";
  if (options.sparse()) stream << ", sparse=true";
  stream << ")";
}

Embedding Embedding::from_pretrained(const Tensor& embeddings,
                                     const EmbeddingFromPretrainedOptions& o) {
  FX_CHECK(embeddings.dim() == 2, kShape, "from_pretrained: expected a 2-D table, got ",
           embeddings.dim(), "-D");
  EmbeddingOptions options(embeddings.size(0), embeddings.size(1));
  options._weight(embeddings).padding_idx(o.padding_idx()).max_norm(o.max_norm());
  options.norm_type(o.norm_type()).scale_grad_by_freq(o.scale_grad_by_freq()).sparse(o.sparse());
  Embedding embedding(options);
  embedding->weight.requires_grad_(!o.freeze());
  return embedding;
}

}  // namespace fornax::nn
