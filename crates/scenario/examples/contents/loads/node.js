// Memory of a Node program: objects from JSON, maps, strings, sorted copies and buffers.
const fs = require('fs');
const rows = [];
for (let i = 0; i < 150000; i++) {
  rows.push({id: i, name: 'user' + (i * 7919 % 100003), score: i * 0.37, tags: ['a' + i % 50, 'b' + i % 13], on: i % 3 === 0});
}
const text = JSON.stringify(rows);
const back = JSON.parse(text);
const index = new Map(back.map(row => [row.name, row]));
const words = new Map();
for (const name of fs.readdirSync('/usr/share/doc').slice(0, 400)) {
  try {
    for (const word of fs.readFileSync(`/usr/share/doc/${name}/copyright`, 'utf8').split(/\s+/)) {
      words.set(word, (words.get(word) || 0) + 1);
    }
  } catch (error) {}
}
const sorted = back.slice().sort((a, b) => a.name < b.name ? -1 : 1).map(row => ({...row, key: row.name + ':' + row.score.toFixed(2)}));
const buffers = [];
for (let i = 0; i < 2000; i++) buffers.push(Buffer.from(text.slice(i * 1000, i * 1000 + 3000)));
console.log('ready');
setInterval(() => { globalThis.kept = [rows, index, words, sorted, buffers, text].length; }, 1000);
