// Suffix automata: all substrings of some sequences, each with a sum of weights over its places, in linear time and
// memory.
#pragma once
#include <cstdint>
#include <vector>

#include "sequences/kmers.hpp"

namespace mercer {

// A state stands for the suffixes of its longest substring that are longer than the longest one of its link; they occur
// at the same places. A. Blumer et al. (1985), for several sequences.
class Automaton {
   public:
    Automaton(int32_t alphabet, int columns, int64_t symbols) : columns_(columns), first_(size_t(alphabet), -1) {
        const size_t states = size_t(2 * symbols + 2);
        length_.reserve(states), link_.reserve(states), edges_.reserve(states),
            weights_.reserve(states * size_t(columns));
        state(0, -1);
    }

    // Adds a sequence, every place of which counts with these weights.
    void add(const int32_t* symbols, int64_t size, const double* weights) {
        int32_t last = 0;
        for (int64_t i = 0; i < size; ++i) {
            last = extended(last, symbols[i]);
            for (int c = 0; c < columns_; ++c) weights_[size_t(last) * columns_ + c] += weights[c];
        }
    }

    // Call after the last sequence: sums the weights over places, and for each state over all suffixes, decay^length
    // each.
    void finish(double decay) {
        int32_t most = 0;
        for (int32_t l : length_) most = std::max(most, l);
        upto_.assign(size_t(most) + 1, 0.0);
        double power = 1;
        for (size_t l = 1; l < upto_.size(); ++l) upto_[l] = upto_[l - 1] + (power *= decay);
        const std::vector<int32_t> order = by_length(most);
        for (size_t k = order.size(); k-- > 1;)
            for (int c = 0; c < columns_; ++c)
                weights_[size_t(link_[order[k]]) * columns_ + c] += weights_[size_t(order[k]) * columns_ + c];
        suffixes_.assign(weights_.size(), 0.0);
        for (size_t k = 1; k < order.size(); ++k) {
            const int32_t s = order[k];
            for (int c = 0; c < columns_; ++c)
                suffixes_[size_t(s) * columns_ + c] =
                    suffixes_[size_t(link_[s]) * columns_ + c] + own(s, length_[s], c);
        }
    }

    // out += the sum, over all substrings of a sequence and their places in it, of the weights of their places in the
    // added sequences.
    void walk(const int32_t* symbols, int64_t size, double* out) const {
        int32_t at = 0, matched = 0;
        for (int64_t i = 0; i < size; ++i) {
            int32_t to = target(at, symbols[i]);
            while (to < 0 && at != 0) {
                at = link_[at];
                matched = length_[at];
                to = target(at, symbols[i]);
            }
            if (to < 0) continue;  // nothing matches
            at = to;
            ++matched;
            for (int c = 0; c < columns_; ++c)
                out[c] += suffixes_[size_t(link_[at]) * columns_ + c] + own(at, matched, c);
        }
    }

   private:
    struct Edge {
        int32_t symbol, to, next;
    };

    int32_t state(int32_t length, int32_t link) {
        length_.push_back(length), link_.push_back(link), edges_.push_back(-1);
        weights_.insert(weights_.end(), size_t(columns_), 0.0);
        return int32_t(length_.size()) - 1;
    }

    // The sum over the substrings of a state that have at most `matched` symbols.
    double own(int32_t s, int32_t matched, int c) const {
        return weights_[size_t(s) * columns_ + c] * (upto_[size_t(matched)] - upto_[size_t(length_[link_[s]])]);
    }

    // The root has an edge for nearly every symbol, so it has a table; other states have few edges, in a list.
    int32_t* place(int32_t s, int32_t symbol) {
        if (s == 0) return first_[size_t(symbol)] < 0 ? nullptr : &first_[size_t(symbol)];
        for (int32_t e = edges_[s]; e >= 0; e = edge_[e].next)
            if (edge_[e].symbol == symbol) return &edge_[e].to;
        return nullptr;
    }
    int32_t target(int32_t s, int32_t symbol) const {
        const int32_t* to = const_cast<Automaton*>(this)->place(s, symbol);
        return to ? *to : -1;
    }
    void connect(int32_t s, int32_t symbol, int32_t to) {
        if (s == 0) {
            first_[size_t(symbol)] = to;
            return;
        }
        edge_.push_back({symbol, to, edges_[s]});
        edges_[s] = int32_t(edge_.size()) - 1;
    }

    // The state for the substrings of `last` with one more symbol.
    int32_t extended(int32_t last, int32_t symbol) {
        const int32_t known = target(last, symbol);
        if (known >= 0) return length_[known] == length_[last] + 1 ? known : cloned(last, known, symbol);
        const int32_t fresh = state(length_[last] + 1, 0);
        int32_t p = last;
        for (; p >= 0 && target(p, symbol) < 0; p = link_[p]) connect(p, symbol, fresh);
        if (p < 0) return fresh;
        const int32_t q = target(p, symbol);
        const int32_t suffix = length_[q] == length_[p] + 1 ? q : cloned(p, q, symbol);
        link_[fresh] = suffix;
        return fresh;
    }

    // A copy of q for the substrings that are reached from p.
    int32_t cloned(int32_t p, int32_t q, int32_t symbol) {
        const int32_t copy = state(length_[p] + 1, link_[q]);
        for (int32_t e = edges_[q]; e >= 0; e = edge_[e].next) {
            const Edge one = edge_[e];  // a copy: connect moves the list
            connect(copy, one.symbol, one.to);
        }
        for (int32_t* to; p >= 0 && (to = place(p, symbol)) && *to == q; p = link_[p]) *to = copy;
        link_[q] = copy;
        return copy;
    }

    std::vector<int32_t> by_length(int32_t most) const {
        std::vector<int32_t> start(size_t(most) + 2, 0), order(length_.size());
        for (int32_t l : length_) ++start[size_t(l) + 1];
        for (size_t l = 1; l < start.size(); ++l) start[l] += start[l - 1];
        for (size_t s = 0; s < length_.size(); ++s) order[size_t(start[size_t(length_[s])]++)] = int32_t(s);
        return order;
    }

    int columns_;
    std::vector<int32_t> first_, length_, link_, edges_;
    std::vector<Edge> edge_;
    std::vector<double> weights_, suffixes_, upto_;
};

// out[i, j] for all sequences i of x and [j0, j1) of z. If `triangle`, z is x, and only i <= j are computed.
inline void substring_kernel(const Corpus& x, const Corpus& z, int32_t alphabet, double decay, bool triangle,
                             int64_t j0, int64_t j1, double* out) {
    const double one = 1;
    parallel(j1 - j0, [&](int64_t task) {
        const int64_t j = j0 + task, size = z.starts[j + 1] - z.starts[j];
        Automaton automaton(alphabet, 1, size);
        automaton.add(z.symbols + z.starts[j], size, &one);
        automaton.finish(decay);
        for (int64_t i = 0; i < (triangle ? j + 1 : x.count); ++i) {
            double sum = 0;
            automaton.walk(x.symbols + x.starts[i], x.starts[i + 1] - x.starts[i], &sum);
            out[i * z.count + j] = sum;
        }
    });
}

// out = K(x, z) v with v of z.count x columns, by one automaton of all of z.
inline void substring_product(const Corpus& x, const Corpus& z, int32_t alphabet, double decay, const double* v,
                              int columns, double* out) {
    Automaton automaton(alphabet, columns, z.starts[z.count]);
    for (int64_t j = 0; j < z.count; ++j)
        automaton.add(z.symbols + z.starts[j], z.starts[j + 1] - z.starts[j], v + j * columns);
    automaton.finish(decay);
    parallel(x.count, [&](int64_t i) {
        automaton.walk(x.symbols + x.starts[i], x.starts[i + 1] - x.starts[i], out + i * columns);
    });
}

}  // namespace mercer
