"""Small recommenders and models of graphs and points, with random weights."""
import torch
import torch.nn.functional as F
from torch import nn


class DeepFm(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.ModuleList(nn.Embedding(50, 1) for _ in range(6))
        self.second = nn.ModuleList(nn.Embedding(50, 8) for _ in range(6))
        self.dense = nn.Linear(4, 1)
        self.deep = nn.Sequential(nn.Linear(52, 32), nn.BatchNorm1d(32),
                                  nn.ReLU(), nn.Dropout(), nn.Linear(32, 1))
        self.bias = nn.Parameter(torch.zeros(1))

    def forward(self, dense, sparse):
        dense = torch.log1p(dense.clamp(min=0))
        columns = [sparse[:, i] for i in range(6)]
        first = sum(f(c) for f, c in zip(self.first, columns))
        v = torch.stack([f(c) for f, c in zip(self.second, columns)], 1)
        pairs = (v.sum(1)**2 - (v**2).sum(1)).sum(1, keepdim=True) * 0.5
        deep = self.deep(torch.cat([v.flatten(1), dense], 1))
        logit = first + self.dense(dense) + pairs + deep + self.bias
        return torch.sigmoid(logit).squeeze(1)


class WideAndDeep(nn.Module):
    """Crossed ids are hashed in the graph; bags of ids have a mask."""

    def __init__(self):
        super().__init__()
        self.wide = nn.Embedding(64, 1)
        self.tables = nn.ModuleList(nn.Embedding(n, 8) for n in (30, 40, 50))
        self.deep = nn.Sequential(nn.Linear(27, 32), nn.Mish(),
                                  nn.Linear(32, 1))

    def forward(self, user, item, bag, price):
        crossed = torch.remainder(user * 31 + item, 64)
        kept = bag.ne(0).unsqueeze(-1).float()
        bagged = (self.tables[2](bag) * kept).sum(1) / kept.sum(1).clamp_min(1)
        x = torch.cat([self.tables[0](user), self.tables[1](item), bagged,
                       price, price.sqrt(), price**2], -1)
        return torch.sigmoid(self.wide(crossed) + self.deep(x))


class InterestNetwork(nn.Module):
    """DIN: attention of an item over a user's history."""

    def __init__(self):
        super().__init__()
        self.items = nn.Embedding(80, 12)
        self.score = nn.Sequential(nn.Linear(48, 16), nn.PReLU(),
                                   nn.Linear(16, 1))
        self.head = nn.Sequential(nn.Linear(24, 16), nn.PReLU(16),
                                  nn.Linear(16, 2))

    def forward(self, item, history, length):
        q = self.items(item)
        h = self.items(history)
        e = q.unsqueeze(1).expand_as(h)
        scores = self.score(torch.cat([e, h, e - h, e * h], -1)).squeeze(-1)
        mask = torch.arange(h.size(1))[None] < length[:, None]
        scores = scores.masked_fill(~mask, -1e9) / 12**0.5
        user = torch.matmul(scores.softmax(-1).unsqueeze(1), h).squeeze(1)
        return F.log_softmax(self.head(torch.cat([q, user], -1)), -1)


class CrossNetwork(nn.Module):
    """DCN v2 with several tasks, each with gates of its own (MMoE)."""

    def __init__(self):
        super().__init__()
        self.cross = nn.ModuleList(nn.Linear(24, 24) for _ in range(3))
        self.experts = nn.ModuleList(nn.Linear(24, 16) for _ in range(3))
        self.gates = nn.ModuleList(nn.Linear(24, 3) for _ in range(2))
        self.towers = nn.ModuleList(nn.Linear(16, 1) for _ in range(2))

    def forward(self, x):
        x0 = x
        for layer in self.cross:
            x = x0 * layer(x) + x
        experts = torch.stack([F.selu(e(x)) for e in self.experts], -1)
        outs = []
        for gate, tower in zip(self.gates, self.towers):
            mixed = (experts * gate(x).softmax(-1).unsqueeze(1)).sum(-1)
            outs.append(torch.sigmoid(tower(mixed)))
        return tuple(outs)


class TwoTowers(nn.Module):
    """Bags of embeddings and the ten best of all items."""

    def __init__(self):
        super().__init__()
        self.bags = nn.EmbeddingBag(60, 16, mode='mean')
        self.items = nn.Parameter(torch.randn(40, 16))
        self.user = nn.Linear(16, 16)

    def forward(self, ids):
        u = F.normalize(self.user(self.bags(ids)), dim=-1)
        scores = F.linear(u, F.normalize(self.items, dim=-1)) / 0.05
        best, at = torch.topk(scores, 10, dim=-1)
        return best, at, torch.logsumexp(scores, -1)


class GraphNetwork(nn.Module):
    """Messages along edges, added up at their ends."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(12, 16), nn.Linear(16, 5)

    def forward(self, x, edges):
        source, target = edges[0], edges[1]
        ones = torch.ones(edges.shape[1])
        degree = torch.zeros(x.shape[0]).scatter_add(0, target, ones) + 1
        norm = degree.rsqrt()
        for i, layer in enumerate((self.first, self.second)):
            y = layer(x)
            sent = y[source] * (norm[source] * norm[target]).unsqueeze(-1)
            at = target.unsqueeze(-1).expand_as(sent)
            x = y / degree.unsqueeze(-1) + torch.zeros_like(y).scatter_add(
                0, at, sent)
            if i == 0:
                x = F.leaky_relu(x, 0.1)
        return x


class PointNetwork(nn.Module):
    """Nearest neighbours in the graph, and shared layers over points."""

    def __init__(self):
        super().__init__()
        self.edge = nn.Sequential(nn.Conv2d(6, 16, 1, bias=False),
                                  nn.BatchNorm2d(16), nn.LeakyReLU(0.2))
        self.shared = nn.Sequential(nn.Conv1d(16, 32, 1), nn.BatchNorm1d(32),
                                    nn.ReLU())
        self.head = nn.Linear(64, 6)

    def forward(self, points):
        n, c, t = points.shape
        inner = -2 * torch.matmul(points.transpose(2, 1), points)
        squares = (points**2).sum(1, keepdim=True)
        apart = -squares - inner - squares.transpose(2, 1)
        near = apart.topk(4, -1)[1]
        flat = (near + torch.arange(n).view(-1, 1, 1) * t).view(-1)
        x = points.transpose(2, 1).contiguous()
        there = x.view(n * t, c)[flat].view(n, t, 4, c)
        here = x.view(n, t, 1, c).repeat(1, 1, 4, 1)
        y = torch.cat((there - here, here), 3).permute(0, 3, 1, 2)
        y = self.shared(self.edge(y).max(-1)[0])
        y = torch.cat([F.adaptive_max_pool1d(y, 1),
                       F.adaptive_avg_pool1d(y, 1)], 1).squeeze(-1)
        return self.head(y)


class Mixer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(16), nn.LayerNorm(16)
        self.tokens = nn.Sequential(nn.Linear(10, 20), nn.GELU(),
                                    nn.Linear(20, 10))
        self.channels = nn.Sequential(nn.Linear(16, 32), nn.GLU(),
                                      nn.Linear(16, 16))

    def forward(self, x):
        x = x + self.tokens(self.norm1(x).transpose(1, 2)).transpose(1, 2)
        x = x + self.channels(self.norm2(x))
        return x, x.std(1), x.var((1, 2), unbiased=False), x.prod(-1)


MODELS = {
    'deepfm': (DeepFm, lambda: {
        'dense': torch.rand(8, 4) * 10, 'sparse': torch.randint(0, 50, (8, 6))}),
    'wide_and_deep': (WideAndDeep, lambda: {
        'user': torch.randint(0, 30, (8,)), 'item': torch.randint(0, 40, (8,)),
        'bag': torch.randint(0, 50, (8, 5)), 'price': torch.rand(8, 1)}),
    'din': (InterestNetwork, lambda: {
        'item': torch.randint(0, 80, (6,)),
        'history': torch.randint(0, 80, (6, 9)),
        'length': torch.tensor([9, 4, 1, 7, 3, 8])}),
    'dcn': (CrossNetwork, lambda: {'x': torch.randn(8, 24)}),
    'two_towers': (TwoTowers, lambda: {'ids': torch.randint(0, 60, (5, 7))}),
    'gcn': (GraphNetwork, lambda: {
        'x': torch.randn(15, 12), 'edges': torch.randint(0, 15, (2, 40))}),
    'dgcnn': (PointNetwork, lambda: {'points': torch.randn(2, 3, 24)}),
    'mixer': (Mixer, lambda: {'x': torch.randn(3, 10, 16)}),
}
