// Fills a heap with objects and has the collector scan all of it.
const [objects, scans] = process.argv.slice(2).map(Number);
const keep = [];
for (let i = 0; i < objects; i++) keep.push({ id: i, name: 'name ' + i * 7919 % objects, next: keep[i >> 1], numbers: [i, i * 3, i ^ 0x5a5a] });
for (let i = 0; i < scans; i++) gc();
console.log(keep.length, Math.round(process.memoryUsage().heapUsed / 1048576), 'MiB');
